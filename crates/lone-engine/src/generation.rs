//! An answer: a prompt is read, tokens are chosen, text streams out, until something ends it.
//!
//! It moves a pass at a time and holds neither the runtime nor the session, so that whoever drives several answers
//! can interleave them, and stop one between any two passes.

mod guesses;
mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lone_lfm::{DecodeStream, SpecialText, Tokenizer};

pub use request::{Event, FinishReason, Request, raw_prompt};

use crate::stops::Stops;
use crate::{Counters, EngineError, Logprobs, RequestError, Runtime, Sampler, Session, Stats};

/// An answer in the making.
#[derive(Debug)]
pub struct Generation {
    prompt: Vec<u32>,
    /// Most tokens the session can hold.
    ctx: usize,
    max_new_tokens: usize,
    stop_tokens: Vec<u32>,
    logprobs: Option<usize>,
    sampler: Sampler,
    text: Option<Text>,
    token_ids: Vec<u32>,
    /// Logits of a pass that checks guesses, `(S, V)`.
    checked_logits: Vec<f32>,
    stats: Stats,
    finish_reason: Option<FinishReason>,
}

/// From tokens to text that can be let out.
#[derive(Debug)]
struct Text {
    tokenizer: Arc<Tokenizer>,
    stream: DecodeStream,
    stops: Stops,
}

impl Generation {
    /// Checks the request and brings `session` to where it parts from the prompt; runs nothing yet. Without a
    /// tokenizer there will be tokens and no text.
    ///
    /// # Errors
    /// [`RequestError`]; a refused request leaves the session as it was.
    pub fn begin(
        runtime: &Runtime,
        session: &mut Session,
        tokenizer: Option<Arc<Tokenizer>>,
        request: Request,
    ) -> Result<Self, RequestError> {
        let Request { prompt, sampling, max_new_tokens, stop_tokens, stop, logprobs, grammar } = request;
        session.check_prompt(runtime, &prompt)?;
        let mut sampler = Sampler::new(sampling, runtime.facts().vocab_size)?.within(grammar);
        let stops = Stops::new(stop)?;
        if tokenizer.is_none() && !stops.is_empty() {
            return Err(RequestError::StopWithoutTokenizer);
        }
        let stream = DecodeStream::new(SpecialText::Keep);
        let text = tokenizer.map(|tokenizer| Text { tokenizer, stream, stops });
        sampler.read_prompt(&prompt);
        let stats = Stats { reused_tokens: session.keep_prefix_of(&prompt), ..Stats::default() };
        if let Some(proposer) = &mut session.proposer {
            proposer.begin(&prompt);
        }
        Ok(Generation {
            prompt,
            ctx: session.ctx(),
            max_new_tokens,
            stop_tokens,
            logprobs,
            sampler,
            text,
            token_ids: Vec::new(),
            checked_logits: Vec::new(),
            stats,
            finish_reason: None,
        })
    }

    /// The tokens chosen so far, one that ended the answer included.
    pub fn token_ids(&self) -> &[u32] {
        &self.token_ids
    }

    /// What it has cost so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Why it ended, if it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason
    }

    /// The seed that makes the same choices again.
    pub fn seed(&self) -> u64 {
        self.sampler.seed()
    }

    /// Runs at most one pass, of the prompt or of the last token and guesses of what follows it, and calls `emit` with
    /// what came of it. `session` is the one it began with, untouched between steps.
    ///
    /// # Errors
    /// [`EngineError::Run`]. What was there before stays; another step tries again.
    ///
    /// # Panics
    /// If `session` has gone on to hold more than this prompt and answer.
    pub fn step(
        &mut self,
        runtime: &mut Runtime,
        session: &mut Session,
        emit: &mut dyn FnMut(Event),
    ) -> Result<(), EngineError> {
        if self.finish_reason.is_some() {
            return Ok(());
        }
        let start = Instant::now();
        let reason = match self.guess(runtime, session) {
            Some(guesses) => self.check(&guesses, start, runtime, session, emit)?,
            None => self.go_on(start, runtime, session, emit)?,
        };
        if let Some(reason) = reason {
            self.finish(reason, session, emit);
        }
        Ok(())
    }

    /// A step without guesses.
    fn go_on(
        &mut self,
        start: Instant,
        runtime: &mut Runtime,
        session: &mut Session,
        emit: &mut dyn FnMut(Event),
    ) -> Result<Option<FinishReason>, EngineError> {
        let before = session.counters();
        let has_logits = self.pass(runtime, session)?;
        let logits = session.logits().filter(|_| has_logits && self.max_new_tokens > 0);
        let token = logits.map(|logits| self.sampler.choose(logits)).transpose()?;
        self.count(before, session.counters(), start.elapsed());
        let Some((token, logits)) = token.zip(logits) else {
            return Ok(has_logits.then_some(FinishReason::Length));
        };
        let reason = self.say(token, logits, emit);
        if let Some(proposer) = &mut session.proposer {
            proposer.push(token);
        }
        Ok(reason)
    }

    /// Adds what a step took to the phase it belongs to.
    fn count(&mut self, before: Counters, after: Counters, time: Duration) {
        let is_prefill = self.token_ids.is_empty();
        let phase = if is_prefill { &mut self.stats.prefill } else { &mut self.stats.decode };
        phase.passes += after.passes - before.passes;
        phase.tokens += after.tokens - before.tokens;
        phase.time += time;
    }

    /// Ends the answer where it is, if it has not ended.
    pub fn cancel(&mut self, session: &mut Session, emit: &mut dyn FnMut(Event)) {
        if self.finish_reason.is_none() {
            self.finish(FinishReason::Cancelled, session, emit);
        }
    }

    /// Steps until the end, or until `cancelled` is set, which is looked at before each pass.
    ///
    /// # Errors
    /// As [`Generation::step`].
    pub fn run(
        &mut self,
        runtime: &mut Runtime,
        session: &mut Session,
        cancelled: &AtomicBool,
        emit: &mut dyn FnMut(Event),
    ) -> Result<FinishReason, EngineError> {
        loop {
            if let Some(reason) = self.finish_reason {
                return Ok(reason);
            }
            if cancelled.load(Ordering::Relaxed) {
                self.cancel(session, emit);
            }
            self.step(runtime, session, emit)?;
        }
    }

    /// Runs what the session does not hold yet of prompt and answer, a pass of it, and returns whether that was all:
    /// there are logits to choose from.
    fn pass(&mut self, runtime: &mut Runtime, session: &mut Session) -> Result<bool, EngineError> {
        let read = session.position();
        let rest = match read.checked_sub(self.prompt.len()) {
            None => &self.prompt[read..],
            Some(said) => &self.token_ids[said..],
        };
        if !rest.is_empty() {
            session.advance(runtime, rest)?;
        }
        if self.token_ids.is_empty() && session.position() == self.prompt.len() {
            session.end_turn();
        }
        Ok(session.position() == self.prompt.len() + self.token_ids.len())
    }

    /// Adds `token` to the answer, chosen by `logits`; whether that ends it.
    fn say(&mut self, token: u32, logits: &[f32], emit: &mut dyn FnMut(Event)) -> Option<FinishReason> {
        self.token_ids.push(token);
        let logprobs = self.logprobs.map(|top| Logprobs::new(logits, token, top));
        emit(Event::Token { id: token, logprobs });
        if self.stop_tokens.contains(&token) {
            return Some(FinishReason::Stop);
        }
        if self.text.as_mut().is_some_and(|text| text.push(token, emit)) {
            self.text = None;
            return Some(FinishReason::Stop);
        }
        let is_full = self.prompt.len() + self.token_ids.len() > self.ctx;
        (is_full || self.token_ids.len() >= self.max_new_tokens).then_some(FinishReason::Length)
    }

    fn finish(&mut self, reason: FinishReason, session: &mut Session, emit: &mut dyn FnMut(Event)) {
        if let Some(text) = self.text.take() {
            text.finish(emit);
        }
        session.end_turn();
        self.finish_reason = Some(reason);
        emit(Event::Done(reason));
    }
}

impl Text {
    /// Lets out what `token` completes; whether that ended the text.
    fn push(&mut self, token: u32, emit: &mut dyn FnMut(Event)) -> bool {
        let released = self.stops.push(&self.stream.push(&self.tokenizer, token));
        if !released.text.is_empty() {
            emit(Event::Text(released.text));
        }
        released.is_stopped
    }

    /// Lets out what was held back.
    fn finish(mut self, emit: &mut dyn FnMut(Event)) {
        let rest = self.stops.push(&self.stream.finish()).text + &self.stops.finish();
        if !rest.is_empty() {
            emit(Event::Text(rest));
        }
    }
}

#[cfg(test)]
mod tests;
