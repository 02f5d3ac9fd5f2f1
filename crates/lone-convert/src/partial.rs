//! What is being written, beside what it will be: how it is called, and whether whoever writes it still lives.
//!
//! ```text
//! .NAME.partial-PID        locked by the process that writes it
//! .NAME.partial-PID-old    what was moved aside for it
//! ```
//! What a killed process leaves is unlocked, so the next one that writes there can tell, and remove it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

/// What the name has between that of the target and the process.
const PARTIAL: &str = ".partial-";
/// What it ends with if it was moved aside.
pub(crate) const OLD: &str = "-old";
/// How often something is tried that another process may undo.
pub(crate) const ATTEMPTS: u32 = 50;

/// Whose something is.
pub enum Lock {
    /// This process's, until the file is dropped.
    Ours(File),
    /// Another one's.
    Theirs,
    /// It is not there, or cannot be locked here.
    None,
}

/// What the names of the unfinished siblings of `target` begin with; the number of the process follows.
pub fn prefix(target: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(target);
    prefix.push(PARTIAL);
    prefix
}

/// What in `directory` is called as something unfinished is.
pub fn all_in(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| is_partial(&entry.file_name()))
}

/// Takes the lock of the file or directory at `path`, if nobody has it.
pub fn lock(path: &Path) -> Lock {
    let Ok(file) = File::open(path) else { return Lock::None };
    match file.try_lock() {
        Ok(()) => Lock::Ours(file),
        Err(TryLockError::WouldBlock) => Lock::Theirs,
        Err(TryLockError::Error(_)) => Lock::None,
    }
}

/// Has `create` make what is at `path`, and locks it, where that is possible.
///
/// # Errors
/// As `create`; [`io::ErrorKind::AlreadyExists`] if something stays there.
pub fn create_locked(path: &Path, create: impl Fn(&Path) -> io::Result<()>) -> io::Result<Option<File>> {
    let mut result = Ok(());
    for _ in 0..ATTEMPTS {
        result = create(path);
        match &result {
            Ok(()) => match lock(path) {
                Lock::Ours(held) if path.exists() => return Ok(Some(held)),
                Lock::None if path.exists() => return Ok(None),
                // Before it was locked, another process took it for abandoned.
                _ => {}
            },
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => break,
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(result.err().unwrap_or_else(|| io::ErrorKind::ResourceBusy.into()))
}

/// Whether this is what something unfinished is called, `.NAME.partial-PID` or `.NAME.partial-PID-old`.
fn is_partial(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.strip_prefix('.')?.rsplit_once(PARTIAL));
    let Some((target, process)) = parts else { return false };
    let process = process.strip_suffix(OLD).unwrap_or(process);
    !target.is_empty() && !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit())
}
