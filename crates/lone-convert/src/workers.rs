//! Work on several things at once, watched from the thread that asked for it.
//!
//! ```text
//! items ─▶ worker 0 ─┐
//!       ─▶ worker 1 ─┴─ bytes done ─▶ Progress
//!             ▲────────── abandoned ──────┘
//! ```
//! A worker reads, converts, hashes and writes its own blocks, which so stay in its core's cache.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::{ConvertError, Progress};

/// How long a wish to stop may go unheard while no block is done.
const PATIENCE: Duration = Duration::from_millis(100);

/// More would only wait for the same memory and the same disk.
const MOST_WORKERS: usize = 8;

/// As many as there are processors to use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MOST_WORKERS)
}

/// Does `work` with every item, begun in their order by `workers` threads, and returns the results in that order.
///
/// # Errors
/// That of an item that failed, or [`ConvertError::Cancelled`] if `progress` says so; the rest is left undone.
pub(crate) fn spread<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    progress: &mut dyn Progress,
    work: impl Fn(&T, &Report<'_>) -> Result<R, ConvertError> + Sync,
) -> Result<Vec<R>, ConvertError> {
    let (next, abandoned) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, done) = channel();
    let run = |report: Report<'_>| {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(results) };
            report.check()?;
            let result = work(item, &report);
            // The others need not finish what will not be whole.
            results.push((index, result.inspect_err(|_| abandoned.store(true, Ordering::Relaxed))?));
        }
    };
    let outcomes = thread::scope(|scope| {
        let report = Report { done: sender, abandoned: &abandoned };
        let workers: Vec<_> = (0..workers.clamp(1, items.len().max(1)))
            .map(|_| {
                let report = report.clone();
                scope.spawn(|| run(report))
            })
            .collect();
        drop(report);
        watch(&done, &abandoned, progress);
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    let results = in_order(outcomes)?;
    // Whoever says stop after the last block was made means it all the same.
    if abandoned.into_inner() { Err(ConvertError::Cancelled) } else { Ok(results) }
}

/// Passes on what is done until every worker has left.
fn watch(done: &Receiver<u64>, abandoned: &AtomicBool, progress: &mut dyn Progress) {
    loop {
        match done.recv_timeout(PATIENCE) {
            Ok(bytes) => progress.advance(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if progress.is_cancelled() {
            abandoned.store(true, Ordering::Relaxed);
        }
    }
}

/// The results of all workers by index; or the failure that the others were abandoned for.
fn in_order<R>(outcomes: Vec<Result<Vec<(usize, R)>, ConvertError>>) -> Result<Vec<R>, ConvertError> {
    let mut results = Vec::new();
    let mut failure = None;
    for outcome in outcomes {
        match outcome {
            Ok(part) => results.extend(part),
            Err(error) if matches!(failure, None | Some(ConvertError::Cancelled)) => failure = Some(error),
            Err(_) => {}
        }
    }
    results.sort_by_key(|&(index, _)| index);
    failure.map_or_else(|| Ok(results.into_iter().map(|(_, result)| result).collect()), Err)
}

/// What a worker tells of its work, and hears.
#[derive(Debug, Clone)]
pub(crate) struct Report<'a> {
    done: Sender<u64>,
    abandoned: &'a AtomicBool,
}

impl<'a> Report<'a> {
    /// So many bytes more are done.
    ///
    /// # Errors
    /// [`ConvertError::Cancelled`] when they are not wanted any more.
    pub(crate) fn advance(&self, bytes: u64) -> Result<(), ConvertError> {
        // Nobody listens only when the watching thread has panicked, which ends this one soon.
        let _ = self.done.send(bytes);
        self.check()
    }

    /// Becomes true when what is made is not wanted any more.
    pub(crate) fn abandoned(&self) -> &'a AtomicBool {
        self.abandoned
    }

    fn check(&self) -> Result<(), ConvertError> {
        if self.abandoned.load(Ordering::Relaxed) { Err(ConvertError::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives up after so many bytes.
    struct Patience(u64);

    impl Progress for Patience {
        fn begin(&mut self, _: crate::Phase, _: u64) {}

        fn advance(&mut self, bytes: u64) {
            self.0 = self.0.saturating_sub(bytes);
        }

        fn is_cancelled(&self) -> bool {
            self.0 == 0
        }
    }

    fn broken() -> ConvertError {
        ConvertError::io("write", std::path::Path::new("f"))(std::io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn results_come_in_the_order_of_the_items_whoever_made_them() {
        let items: Vec<u64> = (0..100).collect();
        for workers in [0, 1, 3, 200] {
            let mut patience = Patience(u64::MAX);
            let doubled = spread(&items, workers, &mut patience, |&item, report| {
                report.advance(item)?;
                Ok(2 * item)
            });
            assert_eq!(doubled.unwrap(), items.iter().map(|item| 2 * item).collect::<Vec<_>>());
            assert_eq!(patience.0, u64::MAX - 4950);
        }
        assert!(spread(&[0u8; 0], 2, &mut (), |_, _| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn a_failure_stops_the_others_and_is_what_is_told() {
        let slow_until_abandoned = |&item: &usize, report: &Report<'_>| {
            if item == 1 {
                return Err(broken());
            }
            loop {
                report.advance(1)?;
                thread::yield_now();
            }
        };
        let error = spread(&[0, 1, 2], 2, &mut (), slow_until_abandoned).map(|_: Vec<()>| ()).unwrap_err();
        assert!(matches!(error, ConvertError::Io { .. }), "{error}");
    }

    #[test]
    fn whoever_watches_can_end_it() {
        let endless = |_: &u8, report: &Report<'_>| {
            loop {
                report.advance(1)?;
            }
        };
        let error = spread(&[0, 1], 2, &mut Patience(1000), endless).map(|_: Vec<()>| ()).unwrap_err();
        assert!(matches!(error, ConvertError::Cancelled), "{error}");
    }
}
