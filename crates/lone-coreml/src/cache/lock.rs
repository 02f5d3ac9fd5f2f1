//! Who uses an entry of the cache: files that are locked, shared by those that load and alone by those that change it.
//!
//! When a file was last changed says when its entry was last used. Where files cannot be locked, there are no locks.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::CoremlError;

const LOCKS: &str = "locks";

/// The lock of one entry; it is given up when this is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// That of the entry `key` below `root`, not held yet.
    ///
    /// # Errors
    /// [`CoremlError::Io`] if the file cannot be made.
    pub(super) fn open(root: &Path, key: &str) -> Result<Self, CoremlError> {
        let path = root.join(LOCKS).join(key);
        let open = || {
            fs::create_dir_all(root.join(LOCKS))?;
            File::options().create(true).append(true).open(&path)
        };
        open().map(Lock).map_err(|source| CoremlError::Io { path: path.clone(), source })
    }

    /// Waits until nobody changes the entry, and notes that it is used.
    pub(super) fn share(&self) {
        self.0.set_modified(SystemTime::now()).ok();
        self.0.lock_shared().ok();
    }

    /// Waits until nobody else uses the entry.
    pub(super) fn take(&self) {
        // A lock that is held cannot be changed to another kind everywhere.
        self.0.unlock().ok();
        self.0.lock().ok();
    }

    /// Whether nobody uses the entry: then nobody will before this is dropped. Where files cannot be locked, nobody knows.
    pub(super) fn is_free(&self) -> bool {
        self.0.try_lock().is_ok()
    }

    /// How long the entry has not been used.
    pub(super) fn age(&self) -> io::Result<Duration> {
        Ok(self.0.metadata()?.modified()?.elapsed().unwrap_or_default())
    }
}
