//! The jobs that wait, and the numbers anybody may ask for.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Job;

/// Why a job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// As many wait as may.
    #[error("{waiting} requests are waiting already")]
    Full {
        /// How many.
        waiting: usize,
    },
    /// It has been closed, or its thread is gone.
    #[error("the engine is shutting down")]
    Closed,
}

/// What a scheduler has to do, and what it keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that are being answered.
    pub active: usize,
    /// Sessions, in use or kept.
    pub sessions: usize,
    /// Bytes of their caches and snapshots.
    pub session_bytes: u64,
}

/// Jobs on their way to the engine's thread.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    most_waiting: usize,
    slots: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    is_closed: bool,
    is_abandoned: bool,
    load: Load,
}

impl Queue {
    pub(super) fn new(most_waiting: usize, slots: usize, load: Load) -> Self {
        let state = Mutex::new(State { load, ..State::default() });
        Queue { state, changed: Condvar::new(), most_waiting, slots }
    }

    pub(super) fn push(&self, job: Job) -> Result<(), SubmitError> {
        let mut state = self.state();
        if state.is_closed {
            return Err(SubmitError::Closed);
        }
        // A job that a free slot will take at once does not wait.
        let room = self.most_waiting + self.slots.saturating_sub(state.load.active);
        if state.jobs.len() >= room {
            state.jobs.retain(|job| !job.listener.is_gone());
        }
        if state.jobs.len() >= room {
            return Err(SubmitError::Full { waiting: state.jobs.len() });
        }
        state.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    /// The next jobs for the slots that are free, given the load; waits for one if no slot is taken. `None` when there
    /// is nothing left to do, and never will be.
    pub(super) fn take(&self, load: Load) -> Option<Vec<Job>> {
        let mut state = self.state();
        state.load = load;
        while load.active == 0 && state.jobs.is_empty() && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_abandoned || (load.active == 0 && state.jobs.is_empty()) {
            return None;
        }
        let count = state.jobs.len().min(self.slots.saturating_sub(load.active));
        let taken: Vec<_> = state.jobs.drain(..count).collect();
        state.load.active += taken.len();
        Some(taken)
    }

    pub(super) fn load(&self) -> Load {
        let state = self.state();
        Load { waiting: state.jobs.len(), ..state.load }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// No more jobs come in.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// No more jobs come in, and those that are there are dropped.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.is_abandoned = true;
        let dropped = std::mem::take(&mut state.jobs);
        self.changed.notify_one();
        drop(state);
        drop(dropped);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done by a panic while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let State { jobs, is_closed, load, .. } = self;
        f.debug_struct("State")
            .field("waiting", &jobs.len())
            .field("is_closed", is_closed)
            .field("load", load)
            .finish()
    }
}
