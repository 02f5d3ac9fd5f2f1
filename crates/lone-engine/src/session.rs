//! One sequence of tokens and what the model remembers of it.
//!
//! A session begins with the smallest caches there are and moves to larger ones as it grows.
//!
//! A pass returns new cache rows and changes nothing; [`Pass::commit`] writes as many as are accepted. Whatever
//! follows from that is here too: padded blocks, going back, and taking up the common prefix of a new prompt.

mod pass;
mod rungs;
mod saved;
mod way_back;

use std::sync::Arc;
use std::time::Instant;

use lone_bundle::Role;
pub use pass::Pass;
use rungs::Rungs;
pub use saved::SavedError;

use crate::cache::{CacheLayout, Caches};
use crate::snapshot::Snapshots;
use crate::{EngineError, Proposer, RequestError, Runtime};

/// How a session is made.
#[derive(Debug, Clone, Copy)]
pub struct SessionOptions {
    /// The most tokens it will hold, one of [`Runtime::contexts`]; the longest when absent.
    pub ctx: Option<usize>,
    /// The most bytes its caches may take: contexts that need more are left out.
    pub kv_budget_bytes: Option<u64>,
    /// Whether its caches are locked in memory, so that the system never swaps them out.
    pub wire_caches: bool,
    /// How many positions it can go back to at most; see [`Session::rewind`].
    pub snapshots: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions { ctx: None, kv_budget_bytes: None, wire_caches: false, snapshots: 16 }
    }
}

/// What passes a session has run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Passes.
    pub passes: usize,
    /// Tokens committed by them; padding and rejected tokens are not counted.
    pub tokens: usize,
}

/// A sequence of tokens with its caches.
#[derive(Debug)]
pub struct Session {
    caches: Caches,
    /// Of every rung, and perhaps of more.
    layouts: Vec<Arc<CacheLayout>>,
    rungs: Rungs,
    tokens: Vec<u32>,
    /// `(V)`, what follows the last token, if `has_logits`.
    logits: Vec<f32>,
    has_logits: bool,
    snapshots: Snapshots,
    counters: Counters,
    pub(crate) proposer: Option<Box<dyn Proposer>>,
}

impl Runtime {
    /// An empty session, with the smallest caches.
    ///
    /// # Errors
    /// [`RequestError::Setting`] for a context length that is not loaded, [`RequestError::OverBudget`] if even the
    /// smallest caches take more than is allowed, [`crate::RunError::Memory`], [`crate::RunError::Wire`].
    pub fn session(&self, options: &SessionOptions) -> Result<Session, EngineError> {
        let rungs = Rungs::new(&self.bundle, &self.known_contexts(options), options)?;
        Ok(Session {
            caches: Caches::new(layout_of(&self.layouts, rungs.shortest()), options.wire_caches)?,
            layouts: self.layouts.clone(),
            rungs,
            tokens: Vec::new(),
            logits: vec![0.0; self.bundle.model.vocab_size],
            has_logits: false,
            snapshots: Snapshots::with_limit(options.snapshots),
            counters: Counters::default(),
            proposer: None,
        })
    }
}

impl Runtime {
    /// The contexts that are loaded, and those that the budget of `options` rules out anyway, ascending.
    fn known_contexts(&self, options: &SessionOptions) -> Vec<usize> {
        let budget_bytes = options.kv_budget_bytes.unwrap_or(u64::MAX);
        let is_known = |ctx: &usize| {
            self.contexts().any(|loaded| loaded == *ctx) || self.bundle.cache_bytes(*ctx) > budget_bytes
        };
        self.bundle.contexts().into_iter().filter(is_known).collect()
    }
}

fn layout_of(layouts: &[Arc<CacheLayout>], ctx: usize) -> Arc<CacheLayout> {
    let layout = layouts.iter().find(|layout| layout.ctx == ctx);
    layout.expect("every rung is a context of the runtime").clone()
}

impl Session {
    /// The tokens in the caches.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Position of the next token.
    pub fn position(&self) -> usize {
        self.tokens.len()
    }

    /// Most tokens it can hold, at its longest context.
    pub fn ctx(&self) -> usize {
        self.rungs.longest()
    }

    /// Most tokens it can hold before it moves to larger caches.
    pub fn rung(&self) -> usize {
        self.caches.layout().ctx
    }

    /// How many tokens still fit.
    pub fn remaining(&self) -> usize {
        self.ctx() - self.position()
    }

    /// Passes and tokens since the session was made.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes of its caches as of now.
    pub fn cache_bytes(&self) -> u64 {
        self.caches.bytes()
    }

    /// Bytes of its snapshots as of now.
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshots.bytes()
    }

    /// Logits of what follows the last token, `(V)`; absent before the first and after going back.
    pub fn logits(&self) -> Option<&[f32]> {
        self.has_logits.then_some(&self.logits[..])
    }

    /// From the next answer on, `proposer` guesses its tokens, or nobody does.
    ///
    /// # Errors
    /// [`RequestError::NoVerify`] if the bundle has, or `runtime` has loaded, no function that checks guesses.
    pub fn set_proposer(
        &mut self,
        runtime: &Runtime,
        proposer: Option<Box<dyn Proposer>>,
    ) -> Result<(), RequestError> {
        if proposer.is_some() && !runtime.shapes().any(|(role, ..)| role == Role::Verify) {
            return Err(RequestError::NoVerify);
        }
        self.proposer = proposer;
        Ok(())
    }

    /// Runs one pass over `tokens`, which must fit one, and commits nothing yet.
    ///
    /// # Errors
    /// [`RequestError`] for no tokens, too many for a pass or the context, or unknown ones; [`EngineError::Run`].
    ///
    /// # Panics
    /// If the session is not of this runtime.
    pub fn pass<'a>(
        &'a mut self,
        runtime: &'a mut Runtime,
        tokens: &'a [u32],
    ) -> Result<Pass<'a>, EngineError> {
        self.check(runtime, tokens)?;
        self.make_room(tokens.len())?;
        let pipeline = runtime.pipeline_for(self.rung(), tokens.len());
        self.pass_on(runtime, pipeline, tokens)
    }

    /// Moves to larger caches if those there are do not hold `tokens` more.
    pub(crate) fn make_room(&mut self, tokens: usize) -> Result<(), EngineError> {
        let needed = self.position() + tokens;
        if needed <= self.rung() {
            return Ok(());
        }
        let rung = self.rungs.holding(needed)?;
        Ok(self.caches.relay(layout_of(&self.layouts, rung), self.position())?)
    }

    pub(crate) fn pass_on<'a>(
        &'a mut self,
        runtime: &'a mut Runtime,
        pipeline: usize,
        tokens: &'a [u32],
    ) -> Result<Pass<'a>, EngineError> {
        self.check(runtime, tokens)?;
        assert!(
            runtime.layouts.iter().any(|layout| Arc::ptr_eq(layout, self.caches.layout())),
            "a session runs on the runtime that made it"
        );
        let most = runtime.pipelines[pipeline].tokens;
        if tokens.len() > most {
            return Err(RequestError::PassTooLong { tokens: tokens.len(), most }.into());
        }
        let start = Instant::now();
        runtime.run(pipeline, &self.caches, self.position(), tokens)?;
        self.counters.passes += 1;
        Ok(Pass { session: self, runtime, pipeline, tokens, elapsed: start.elapsed() })
    }

    fn check(&self, runtime: &Runtime, tokens: &[u32]) -> Result<(), RequestError> {
        if tokens.is_empty() {
            return Err(RequestError::EmptyPrompt);
        }
        self.rungs.holding(self.position() + tokens.len())?;
        runtime.check_tokens(tokens)
    }

    /// Runs one pass over as many of `tokens` as the best fitting shape takes, and returns how many that were. After
    /// the pass that takes the last of them, [`Session::logits`] are there.
    ///
    /// # Errors
    /// [`RequestError`] for no tokens, unknown ones, or more than fit the context; [`EngineError::Run`].
    pub fn advance(&mut self, runtime: &mut Runtime, tokens: &[u32]) -> Result<usize, EngineError> {
        self.check(runtime, tokens)?;
        let (mut pipeline, mut taken) = runtime.next_pass(self.rung(), tokens.len());
        while self.position() + taken > self.rung() {
            self.make_room(taken)?;
            (pipeline, taken) = runtime.next_pass(self.rung(), tokens.len());
        }
        let pass = self.pass_on(runtime, pipeline, &tokens[..taken])?;
        if taken == tokens.len() {
            pass.commit_all()?
        } else {
            pass.commit(taken)
        }
        Ok(taken)
    }

    /// Appends `tokens`, in as few passes as the shapes allow.
    ///
    /// # Errors
    /// As [`Session::advance`]; what was committed before a failing pass stays.
    pub fn extend(&mut self, runtime: &mut Runtime, tokens: &[u32]) -> Result<(), EngineError> {
        let mut rest = tokens;
        self.check(runtime, rest)?;
        while !rest.is_empty() {
            rest = &rest[self.advance(runtime, rest)?..];
        }
        Ok(())
    }

    /// Makes the session hold exactly `prompt`, with logits for what follows, running only what is not there yet.
    /// Returns how many tokens were there.
    ///
    /// # Errors
    /// As [`Session::extend`]; a refused prompt leaves the session as it was.
    pub fn set_prompt(&mut self, runtime: &mut Runtime, prompt: &[u32]) -> Result<usize, EngineError> {
        self.check_prompt(runtime, prompt)?;
        let reused = self.keep_prefix_of(prompt);
        if reused < prompt.len() {
            self.extend(runtime, &prompt[reused..])?;
        }
        self.end_turn();
        Ok(reused)
    }

    /// Refuses a prompt that this session could not hold, or the model not read.
    ///
    /// # Errors
    /// [`RequestError`], with the numbers.
    pub fn check_prompt(&self, runtime: &Runtime, prompt: &[u32]) -> Result<(), RequestError> {
        if prompt.is_empty() {
            return Err(RequestError::EmptyPrompt);
        }
        self.rungs.holding(prompt.len())?;
        runtime.check_tokens(prompt)
    }

    /// Marks a position worth coming back to: the end of a prompt, or of an answer.
    pub fn end_turn(&mut self) {
        let logits = self.has_logits.then_some(&self.logits[..]);
        self.snapshots.take(&self.caches, self.tokens.len(), true, logits);
    }
}

#[cfg(test)]
pub(crate) mod rejections;
#[cfg(test)]
mod tests;
