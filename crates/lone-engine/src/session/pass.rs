//! A pass between running and being accepted.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::Session;
use crate::pipeline::Pipeline;
use crate::{RunError, Runtime};

/// Positions between snapshots that are no ends of turns.
const SNAPSHOT_EVERY: usize = 64;

/// A pass that has run, of which nothing is committed yet. Dropping it leaves the session as it was.
pub struct Pass<'a> {
    pub(super) session: &'a mut Session,
    pub(super) runtime: &'a mut Runtime,
    pub(super) pipeline: usize,
    pub(super) tokens: &'a [u32],
    /// What running it took.
    pub(super) elapsed: Duration,
}

impl Pass<'_> {
    /// Writes the logits of what follows each of the tokens in `range` to `logits (range.len(), V)`.
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Panics
    /// If `range` is not within the pass's tokens, or `logits` is of another size.
    pub fn logits(&mut self, range: Range<usize>, logits: &mut [f32]) -> Result<(), RunError> {
        assert!(range.end <= self.tokens.len(), "logits of tokens of the pass");
        assert_eq!(logits.len(), range.len() * self.runtime.bundle.model.vocab_size, "room for the logits");
        self.read_logits(range, logits)
    }

    fn read_logits(&mut self, range: Range<usize>, logits: &mut [f32]) -> Result<(), RunError> {
        let start = Instant::now();
        self.runtime.logits(self.pipeline, range, logits)?;
        self.runtime.pipelines[self.pipeline].pace.record(self.elapsed + start.elapsed());
        Ok(())
    }

    /// Accepts the first `accepted` tokens: writes their rows and appends them to the session.
    ///
    /// # Panics
    /// If the pass had fewer.
    pub fn commit(mut self, accepted: usize) {
        self.write(accepted);
    }

    /// Accepts the first `accepted` tokens, one at least, given the logits of what follows the last of them, `(V)`.
    pub(crate) fn commit_with_logits(mut self, accepted: usize, logits: &[f32]) {
        self.write(accepted);
        self.session.logits.copy_from_slice(logits);
        self.session.has_logits = true;
    }

    /// Accepts all tokens, and gets the logits of what follows.
    pub(super) fn commit_all(mut self) -> Result<(), RunError> {
        let last = self.tokens.len() - 1..self.tokens.len();
        let mut logits = std::mem::take(&mut self.session.logits);
        let read = self.read_logits(last, &mut logits);
        self.session.logits = logits;
        read?;
        self.write(self.tokens.len());
        self.session.has_logits = true;
        Ok(())
    }

    fn write(&mut self, accepted: usize) {
        let accepted_tokens = &self.tokens[..accepted];
        if accepted == 0 {
            return;
        }
        let session = &mut *self.session;
        let position = session.position();
        self.runtime.pipelines[self.pipeline].commit(&mut session.caches, position, accepted);
        session.tokens.extend_from_slice(accepted_tokens);
        session.counters.tokens += accepted;
        session.has_logits = false;
        if position / SNAPSHOT_EVERY != session.position() / SNAPSHOT_EVERY {
            session.snapshots.take(&session.caches, session.position(), false, None);
        }
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.runtime.pipelines[self.pipeline]
    }
}
