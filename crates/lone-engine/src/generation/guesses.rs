//! Steps of an answer that check guesses: several tokens for one pass, where the proposer was right.

use std::time::Instant;

use super::{Event, FinishReason, Generation};
use crate::{EngineError, RunError, Runtime, Session, Terms};

/// The last token and guesses of what follows it.
pub(super) struct Guesses {
    pipeline: usize,
    tokens: Vec<u32>,
}

impl Guesses {
    fn guessed(&self) -> &[u32] {
        &self.tokens[1..]
    }
}

impl Generation {
    /// What the session's proposer guesses of the tokens to come, if anything.
    pub(super) fn guess(&self, runtime: &Runtime, session: &mut Session) -> Option<Guesses> {
        let newest = *self.token_ids.last()?;
        if session.position() + 1 != self.prompt.len() + self.token_ids.len() {
            return None;
        }
        let (pipeline, terms) = runtime.verify(session.rung())?;
        // A pass says one token more than it guesses. Where the caches end, a step without guesses moves to larger ones.
        let most = (session.rung() - session.position())
            .min(self.max_new_tokens - self.token_ids.len())
            .saturating_sub(1);
        let most = most.min(terms.most);
        if most == 0 {
            return None;
        }
        let mut guessed = Vec::with_capacity(most);
        session.proposer.as_mut()?.propose(&Terms { most, ..terms }, &mut guessed);
        // What follows the end of the answer is not going to be said.
        let end = guessed.iter().position(|token| self.stop_tokens.contains(token));
        guessed.truncate(end.map_or(most, |end| end + 1));
        let is_any = !guessed.is_empty();
        is_any.then(|| Guesses { pipeline, tokens: [&[newest], &guessed[..]].concat() })
    }

    /// Runs the last token and the guesses in one pass, and says what the model does, as far as the guesses hold.
    pub(super) fn check(
        &mut self,
        guesses: &Guesses,
        start: Instant,
        runtime: &mut Runtime,
        session: &mut Session,
        emit: &mut dyn FnMut(Event),
    ) -> Result<Option<FinishReason>, EngineError> {
        let before = session.counters();
        let vocab_size = runtime.facts().vocab_size;
        let mut pass = session.pass_on(runtime, guesses.pipeline, &guesses.tokens)?;
        let mut logits = std::mem::take(&mut self.checked_logits);
        logits.resize(guesses.tokens.len() * vocab_size, 0.0);
        pass.logits(0..guesses.tokens.len(), &mut logits)?;
        let chosen = self.choose(guesses.guessed(), &logits, vocab_size)?;
        let time = start.elapsed();

        let mut reason = None;
        let mut said = 0;
        for (&token, logits) in chosen.iter().zip(logits.chunks_exact(vocab_size)) {
            reason = self.say(token, logits, emit);
            said += 1;
            if reason.is_some() {
                break;
            }
        }
        // The last token said is never run, as in a pass without guesses.
        pass.commit_with_logits(said, &logits[(said - 1) * vocab_size..said * vocab_size]);
        self.checked_logits = logits;
        self.count(before, session.counters(), time);
        self.learn(guesses.guessed(), &chosen[..said], session);
        Ok(reason)
    }

    /// The model's choices after the last token and after each guess that holds, given `logits (S, V)`.
    fn choose(&mut self, guessed: &[u32], logits: &[f32], vocab_size: usize) -> Result<Vec<u32>, RunError> {
        let mut chosen = Vec::with_capacity(guessed.len() + 1);
        for (i, logits) in logits.chunks_exact(vocab_size).enumerate() {
            match self.sampler.choose(logits) {
                Ok(token) => chosen.push(token),
                Err(error) if chosen.is_empty() => return Err(error),
                // The next step meets it again, with all before it said.
                Err(_) => break,
            }
            if guessed.get(i) != chosen.last() {
                break;
            }
        }
        Ok(chosen)
    }

    /// Tells the proposer and the statistics what became of `guessed`.
    fn learn(&mut self, guessed: &[u32], said: &[u32], session: &mut Session) {
        let accepted = guessed.iter().zip(said).take_while(|(guess, token)| guess == token).count();
        let speculated = &mut self.stats.speculated;
        speculated.drafted += guessed.len();
        speculated.accepted += accepted;
        speculated.passes += 1;
        if let Some(proposer) = &mut session.proposer {
            proposer.learn(accepted, accepted < said.len().min(guessed.len()));
            said.iter().for_each(|&token| proposer.push(token));
        }
    }
}

#[cfg(test)]
mod tests;
