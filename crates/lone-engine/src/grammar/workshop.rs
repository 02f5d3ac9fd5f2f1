//! Where grammars are made: on threads of their own, which have room for deep schemas, and are few. Whoever waits for
//! one waits so long and no longer.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{GrammarError, refuse};

/// Grammars made at the same time, those that nobody waits for any more included.
const MOST_AT_WORK: usize = 2;
/// What making one may take.
const MOST_TIME: Duration = Duration::from_secs(5);
/// What one may wait to be begun: whoever waits keeps a thread from others, who may want no grammar.
const PATIENCE: Duration = Duration::from_millis(250);
/// What the deepest schemas take, several times over; what is not used is not there.
const STACK_BYTES: usize = 256 << 20;

/// The threads of one compiler.
#[derive(Debug, Clone)]
pub(super) struct Workshop {
    places: Arc<Places>,
    most_time: Duration,
}

#[derive(Debug, Default)]
struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// One of them, until it is dropped.
struct Place(Arc<Places>);

impl Default for Workshop {
    fn default() -> Self {
        Workshop { places: Arc::default(), most_time: MOST_TIME }
    }
}

impl Workshop {
    /// What `work` comes to. Work that takes too long is left to itself, and keeps its place to the end.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, GrammarError> + Send + 'static,
    ) -> Result<T, GrammarError> {
        let deadline = Instant::now() + self.most_time;
        let busy =
            || GrammarError { is_for_now: true, ..refuse("too many others are being read; try again") };
        let place = self.places.take(self.most_time.min(PATIENCE)).ok_or_else(busy)?;
        let (done, outcome) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("grammar".into()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            let _place = place;
            // Nobody may be waiting any more.
            done.send(work()).ok();
        });
        spawned.map_err(|error| refuse(format_args!("there is no thread to read it: {error}")))?;
        match outcome.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.most_time.as_secs_f64();
                Err(refuse(format_args!("it is too much: reading it takes longer than {seconds} s")))
            }
            Err(RecvTimeoutError::Disconnected) => Err(refuse("it is too much, or wrong")),
        }
    }
}

impl Places {
    fn take(self: &Arc<Self>, patience: Duration) -> Option<Place> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(taken, patience, |taken| *taken >= MOST_AT_WORK);
        let (mut taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| {
            *taken += 1;
            Place(Arc::clone(self))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_and_its_place_is_free_again_even_after_a_panic() {
        let workshop = Workshop::default();
        for round in 0..2 * MOST_AT_WORK {
            assert_eq!(workshop.run(move || Ok(round)), Ok(round));
            let broken: Result<(), _> = workshop.run(|| panic!("on purpose"));
            assert!(broken.is_err());
        }
        while *workshop.places.taken.lock().unwrap() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn work_that_takes_too_long_is_left_and_keeps_its_place() {
        let workshop = Workshop { most_time: Duration::from_millis(20), ..Workshop::default() };
        let (end, ending) = mpsc::channel::<()>();
        let ending = Arc::new(Mutex::new(ending));
        for _ in 0..MOST_AT_WORK {
            let ending = Arc::clone(&ending);
            let work = move || ending.lock().unwrap().recv().map_err(refuse);
            let refusal = workshop.run(work).unwrap_err();
            assert!(refusal.reason.contains("longer than 0.02 s") && !refusal.is_for_now, "{refusal}");
        }
        assert!(workshop.run(|| Ok(())).unwrap_err().is_for_now);
        drop(end);
        while workshop.run(|| Ok(())).is_err() {}
    }

    #[test]
    fn deep_work_has_room() {
        fn depth(levels: usize) -> usize {
            let frame = std::hint::black_box([1_u8; 1 << 14]);
            if levels == 0 { 0 } else { depth(levels - 1) + usize::from(frame[levels % frame.len()]) }
        }
        assert_eq!(Workshop::default().run(|| Ok(depth(2000))), Ok(2000));
    }
}
