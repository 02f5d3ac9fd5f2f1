//! What proposers have learned, shared by those of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::odds::Odds;

/// What has come of guessing so far. Clones are the same experience: proposers that share one learn from each other,
/// and lose together no more than one would.
#[derive(Debug, Clone, Default)]
pub struct Experience(Arc<Mutex<Odds>>);

impl Experience {
    /// That of a beginner.
    pub fn new() -> Self {
        Experience::default()
    }

    pub(super) fn odds(&self) -> MutexGuard<'_, Odds> {
        // Nothing is left half done by a panic while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
