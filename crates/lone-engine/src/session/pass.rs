//! A pass between running and being accepted.

use std::ops::Range;

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
        self.runtime.logits(self.pipeline, range, logits)
    }

    /// Accepts the first `accepted` tokens: writes their rows and appends them to the session.
    ///
    /// # Panics
    /// If the pass had fewer.
    pub fn commit(self, accepted: usize) {
        let accepted_tokens = &self.tokens[..accepted];
        if accepted == 0 {
            return;
        }
        let session = self.session;
        let position = session.position();
        self.runtime.pipelines[self.pipeline].commit(&mut session.caches, position, accepted);
        session.tokens.extend_from_slice(accepted_tokens);
        session.counters.tokens += accepted;
        session.has_logits = false;
        if position / SNAPSHOT_EVERY != session.position() / SNAPSHOT_EVERY {
            session.snapshots.take(&session.caches, session.position(), false, None);
        }
    }

    /// Accepts all tokens, and gets the logits of what follows.
    pub(super) fn commit_all(self) -> Result<(), RunError> {
        let Pass { session, runtime, pipeline, tokens } = self;
        let last = tokens.len() - 1..tokens.len();
        runtime.logits(pipeline, last, &mut session.logits)?;
        Pass { session: &mut *session, runtime, pipeline, tokens }.commit(tokens.len());
        session.has_logits = true;
        Ok(())
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.runtime.pipelines[self.pipeline]
    }
}
