//! Ctrl-C: the first one asks the work to stop and tidy up, the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The exit code of a program that was stopped by Ctrl-C.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether somebody asked the work to stop. Clones watch the same request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Watches SIGINT, SIGTERM and SIGHUP (Ctrl-C and closing the window, elsewhere).
    ///
    /// # Errors
    /// If the system does not allow it; the default, ending at once, then stays in place.
    pub(crate) fn watch() -> Result<Self, ctrlc::Error> {
        let interrupt = Interrupt::default();
        let raised = Arc::clone(&interrupt.raised);
        ctrlc::set_handler(move || {
            if raised.swap(true, Ordering::SeqCst) {
                end_at_once();
            }
        })?;
        Ok(interrupt)
    }

    /// Whether the work should stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Waits for `duration`, or until interrupted: then it returns `false`.
    pub(crate) fn sleep(&self, duration: Duration) -> bool {
        let end = Instant::now() + duration;
        while !self.is_raised() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        false
    }

    /// As Ctrl-C would.
    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
    }
}

#[expect(clippy::exit, reason = "who presses Ctrl-C twice does not want to wait for destructors")]
fn end_at_once() {
    std::process::exit(EXIT_CODE.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_early_when_interrupted() {
        let interrupt = Interrupt::default();
        assert!(interrupt.sleep(Duration::from_millis(1)));
        interrupt.clone().raise();
        assert!(!interrupt.sleep(Duration::from_secs(60)));
    }
}
