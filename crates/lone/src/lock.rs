//! One process at a time: a file that is locked while somebody works on what it stands for.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::interrupt::Interrupt;

const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Waits until no other process holds `path`, and holds it until the returned file is dropped. Calls `on_wait` if
/// somebody else has it first. `None` if interrupted.
///
/// # Errors
/// If the file cannot be made or locked.
pub(crate) fn acquire(
    path: &Path,
    interrupt: &Interrupt,
    on_wait: impl FnOnce(),
) -> io::Result<Option<File>> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let file = File::options().create(true).append(true).open(path)?;
    let mut on_wait = Some(on_wait);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        if let Some(on_wait) = on_wait.take() {
            on_wait();
        }
        if !interrupt.sleep(BETWEEN_ATTEMPTS) {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_had_by_one_at_a_time_and_whoever_waits_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/x.lock");
        let interrupt = Interrupt::default();
        let held = acquire(&path, &interrupt, || panic!("nobody has it")).unwrap();
        assert!(held.is_some());
        let waiting = acquire(&path, &interrupt, || interrupt.raise()).unwrap();
        assert!(waiting.is_none(), "two hold the same lock");
        drop(held);
        assert!(acquire(&path, &Interrupt::default(), || panic!("nobody has it")).unwrap().is_some());
    }
}
