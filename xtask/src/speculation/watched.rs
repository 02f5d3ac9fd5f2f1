//! A proposer whose calls are counted and timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lone_engine::{Proposer, Terms};

/// What a proposer has cost so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<AtomicU64>);

impl Tally {
    pub(super) fn time(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Calls `act` and adds what it takes.
    fn add<T>(&self, act: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = act();
        self.0.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }
}

/// Another proposer, timed while it reads the prompt and while tokens are made.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) proposer: Box<dyn Proposer>,
    pub(super) tally: Tally,
}

impl Proposer for Watched {
    fn begin(&mut self, history: &[u32]) {
        self.tally.add(|| self.proposer.begin(history));
    }

    fn push(&mut self, token: u32) {
        self.tally.add(|| self.proposer.push(token));
    }

    fn propose(&mut self, terms: &Terms, draft: &mut Vec<u32>) {
        self.tally.add(|| self.proposer.propose(terms, draft));
    }

    fn learn(&mut self, accepted: usize, rejected: bool) {
        self.tally.add(|| self.proposer.learn(accepted, rejected));
    }
}
