//! Is there room? Asked before writing, where the system can tell.

use std::path::Path;

use crate::ConvertError;

/// What the small files of a bundle take at most: descriptions, a tokenizer.
const SLACK_BYTES: u64 = 16 << 20;

/// Refuses to begin what cannot be finished: `bytes` of weights in `dir`, for a bundle at `out`.
pub(crate) fn check(dir: &Path, out: &Path, bytes: u64) -> Result<(), ConvertError> {
    let needed_bytes = bytes + SLACK_BYTES;
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
