//! Ctrl-C: the first one asks the work to stop and tidy up, the second one ends the process. A closed terminal asks too.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lone_verify::Watch;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a program that was stopped by Ctrl-C.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether somebody asked the work to stop. Clones watch the same request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
    /// Whether it was not Ctrl-C: the program is to end, not only what it is doing.
    ends: Arc<AtomicBool>,
    /// Whether there is no work to stop.
    is_idle: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on Ctrl-C and SIGTERM ask instead of ending the process, and so does SIGHUP, unless it is ignored as
    /// by `nohup`.
    ///
    /// # Errors
    /// If the system does not allow it; the default, ending at once, then stays in place.
    pub(crate) fn watch(&self) -> io::Result<()> {
        flag::register(SIGTERM, Arc::clone(&self.ends))?;
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down and raises it, the second finds it up.
            flag::register_conditional_shutdown(signal, EXIT_CODE.into(), Arc::clone(&self.raised))?;
            flag::register(signal, Arc::clone(&self.raised))?;
        }
        // Twice is no second wish: a shell and the system may both tell that the terminal is gone.
        #[cfg(unix)]
        if !hangup_is_ignored() {
            let hangup = signal_hook::consts::SIGHUP;
            flag::register_conditional_shutdown(hangup, EXIT_CODE.into(), Arc::clone(&self.is_idle))?;
            flag::register(hangup, Arc::clone(&self.ends))?;
            flag::register(hangup, Arc::clone(&self.raised))?;
        }
        // A file that grows past a limit is then an error like a full disk, and not the end of the process.
        #[cfg(unix)]
        flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
        Ok(())
    }

    /// Whether the work should stop.
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Forgets a Ctrl-C whose wish was granted, so that the next one is the first again. `false` if the program was
    /// asked to end.
    pub(crate) fn take_back(&self) -> bool {
        let ends = self.ends.load(Ordering::SeqCst);
        self.raised.store(ends, Ordering::SeqCst);
        !ends
    }

    /// Waits for somebody in `wait`: with no work to tidy up, the first signal ends the process.
    pub(crate) fn while_idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.is_idle.store(true, Ordering::SeqCst);
        self.raised.store(true, Ordering::SeqCst);
        let outcome = wait();
        self.is_idle.store(false, Ordering::SeqCst);
        self.take_back();
        outcome
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

/// Comparisons and exams end by it.
impl Watch for Interrupt {
    fn is_cancelled(&self) -> bool {
        self.is_raised()
    }
}

/// Whether whoever started this process had it ignore SIGHUP. Where the system does not tell: `nohup` leaves no
/// terminal to write errors to.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let ignored = status.as_deref().and_then(ignores_hangup);
    ignored.unwrap_or_else(|| !io::IsTerminal::is_terminal(&io::stderr()))
}

/// What Linux's account of a process says about SIGHUP, the lowest bit of the mask of ignored signals.
#[cfg(unix)]
fn ignores_hangup(status: &str) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & 1 != 0)
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

    #[test]
    fn a_ctrl_c_can_be_taken_back_and_a_request_to_end_cannot() {
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert!(interrupt.take_back() && !interrupt.is_raised());
        interrupt.while_idle(|| assert!(interrupt.is_raised()));
        assert!(!interrupt.is_raised());
        interrupt.ends.store(true, Ordering::SeqCst);
        interrupt.raise();
        assert!(!interrupt.take_back() && interrupt.is_raised());
    }

    #[cfg(unix)]
    #[test]
    fn a_hangup_that_is_ignored_stays_ignored() {
        assert_eq!(ignores_hangup("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n"), Some(true));
        assert_eq!(ignores_hangup("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"), Some(false));
        assert_eq!(ignores_hangup("SigBlk:\t0000000000000001\n"), None);
    }
}
