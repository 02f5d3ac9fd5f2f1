//! Is there room? Asked before writing, where the system can tell.

use std::path::Path;

use crate::ConvertError;

/// Refuses to begin what cannot be finished: `needed_bytes` in `dir`, for a bundle at `out`.
pub(crate) fn check(dir: &Path, out: &Path, needed_bytes: u64) -> Result<(), ConvertError> {
    match free_bytes(dir) {
        Some(free) if free < needed_bytes => {
            Err(ConvertError::NoSpace { dir: out.into(), needed_bytes, free_bytes: Some(free) })
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_no_disk_is_refused_with_both_numbers() {
        let dir = tempfile::tempdir().unwrap();
        check(dir.path(), Path::new("b"), 1).unwrap();
        let message = check(dir.path(), Path::new("b"), 1 << 62).unwrap_err().to_string();
        assert!(message.starts_with("no space left: the bundle in b needs at least "), "{message}");
        assert!(message.contains(" 4611686018427387904 bytes, and "), "{message}");
    }
}
