//! The word that decides who may look at a job, and when it is over.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a worker learns from a look at the gate.
pub(super) enum News {
    /// No job that it has not seen.
    Nothing,
    /// A new job is open.
    Job(u64),
    /// The pool is being dropped.
    Shutdown,
}

/// One word: the number of the job above bit 32, then whether it is open, whether the pool is being dropped,
/// and how many workers are inside.
#[derive(Default)]
pub(super) struct Gate(AtomicU64);

impl Gate {
    const OPEN: u64 = 1 << 31;
    const SHUTDOWN: u64 = 1 << 30;
    const INSIDE: u64 = Self::SHUTDOWN - 1;
    const JOB: u64 = 1 << 32;

    /// Opens the next job; what was written before is seen by whoever enters.
    pub(super) fn open(&self) {
        self.0.fetch_add(Self::JOB | Self::OPEN, Ordering::SeqCst);
    }

    /// Lets nobody in any more.
    pub(super) fn close(&self) {
        self.0.fetch_and(!Self::OPEN, Ordering::Relaxed);
    }

    /// Sends the workers home.
    pub(super) fn shut_down(&self) {
        self.0.fetch_or(Self::SHUTDOWN, Ordering::SeqCst);
    }

    /// What there is for a worker that has seen `last_job`.
    pub(super) fn look(&self, last_job: u64) -> News {
        let word = self.0.load(Ordering::SeqCst);
        if word & Self::SHUTDOWN != 0 {
            News::Shutdown
        } else if word & Self::OPEN != 0 && word / Self::JOB != last_job {
            News::Job(word / Self::JOB)
        } else {
            News::Nothing
        }
    }

    /// Goes inside if `job` is still open.
    pub(super) fn enter(&self, job: u64) -> bool {
        let still_open = |word: u64| (word / Self::JOB == job && word & Self::OPEN != 0).then_some(word + 1);
        self.0.try_update(Ordering::Acquire, Ordering::Relaxed, still_open).is_ok()
    }

    /// Goes out again; what was written inside is seen by whoever finds the gate empty.
    pub(super) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Whether any worker is inside.
    pub(super) fn occupied(&self) -> bool {
        self.0.load(Ordering::Acquire) & Self::INSIDE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(news: News) -> Option<u64> {
        match news {
            News::Job(job) => Some(job),
            News::Nothing | News::Shutdown => None,
        }
    }

    #[test]
    fn a_job_is_news_until_it_is_seen_or_closed() {
        let gate = Gate::default();
        assert_eq!(seen(gate.look(0)), None);
        gate.open();
        assert_eq!(seen(gate.look(0)), Some(1));
        assert_eq!(seen(gate.look(1)), None);
        gate.close();
        assert_eq!(seen(gate.look(0)), None);
    }

    #[test]
    fn only_the_open_job_can_be_entered() {
        let gate = Gate::default();
        gate.open();
        assert!(gate.enter(1) && gate.occupied());
        gate.close();
        assert!(!gate.enter(1) && gate.occupied());
        gate.leave();
        assert!(!gate.occupied());
        gate.open();
        assert!(!gate.enter(1) && gate.enter(2));
    }

    #[test]
    fn numbers_of_jobs_wrap_around() {
        let gate = Gate(AtomicU64::new(!0 << 32));
        gate.open();
        assert_eq!(seen(gate.look(u64::from(u32::MAX))), Some(0));
        assert!(gate.enter(0));
    }
}
