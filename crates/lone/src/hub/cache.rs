//! The hub's cache on disk: refs, blobs, snapshots and locks.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{HubError, RepoSpec, listing};
use crate::interrupt::Interrupt;
use crate::lock;
use crate::ui::Ui;

/// The part of the cache that belongs to one repository.
#[derive(Debug)]
pub(super) struct RepoCache {
    dir: PathBuf,
    locks: PathBuf,
}

impl RepoCache {
    pub(super) fn new(cache: &Path, repo: &RepoSpec) -> Self {
        let folder = format!("models--{}--{}", repo.org, repo.name);
        RepoCache { dir: cache.join(&folder), locks: cache.join(".locks").join(folder) }
    }

    /// Where the files of a commit are, under their own names.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.dir.join("snapshots").join(commit)
    }

    /// The snapshot of `commit`, if everything a conversion needs is there.
    pub(super) fn complete_commit(&self, commit: &str) -> Option<PathBuf> {
        let snapshot = self.snapshot(commit);
        (is_commit(commit) && is_complete(&snapshot)).then_some(snapshot)
    }

    /// The snapshot that `revision` was when last asked, if it is complete.
    pub(super) fn complete_ref(&self, revision: &str) -> Option<PathBuf> {
        let commit = fs::read_to_string(self.dir.join("refs").join(revision)).ok()?;
        self.complete_commit(commit.trim())
    }

    /// Remembers which commit `revision` is.
    pub(super) fn write_ref(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if revision == commit {
            return Ok(());
        }
        let path = self.dir.join("refs").join(revision);
        create_parent(&path)?;
        fs::write(&path, commit).map_err(|source| HubError::Io { path, source })
    }

    /// Where the content with this ETag is kept.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.dir.join("blobs").join(etag)
    }

    pub(super) fn has_blob(&self, etag: &str) -> bool {
        self.blob(etag).is_file()
    }

    /// Makes `name` in the snapshot stand for the blob.
    pub(super) fn link(&self, commit: &str, name: &str, etag: &str) -> Result<(), HubError> {
        let path = self.snapshot(commit).join(name);
        create_parent(&path)?;
        let linked = match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => link_or_copy(&self.dir, etag, &path),
        };
        linked.map_err(|source| HubError::Io { path, source })
    }

    /// Waits until no other process fetches this blob, and keeps others out until the lock is dropped.
    pub(super) fn lock_blob(&self, etag: &str, interrupt: &Interrupt, ui: &Ui) -> Result<File, HubError> {
        let path = self.locks.join(format!("{etag}.lock"));
        let waiting = || ui.note("another process is fetching this file; waiting for it");
        match lock::acquire(&path, interrupt, waiting) {
            Ok(Some(lock)) => Ok(lock),
            Ok(None) => Err(HubError::Interrupted { file: etag.to_owned() }),
            Err(source) => Err(HubError::Io { path, source }),
        }
    }
}

pub(super) fn create_parent(path: &Path) -> Result<(), HubError> {
    let parent = path.parent().expect("paths in the cache have a parent");
    fs::create_dir_all(parent).map_err(|source| HubError::Io { path: parent.into(), source })
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Links are made after downloads, small files first, so the weights' names prove that all is there.
fn is_complete(snapshot: &Path) -> bool {
    if !snapshot.join("config.json").is_file() {
        return false;
    }
    if snapshot.join("model.safetensors").is_file() {
        return true;
    }
    let index = fs::read(snapshot.join("model.safetensors.index.json")).unwrap_or_default();
    listing::shards(&index).is_ok_and(|shards| shards.iter().all(|shard| snapshot.join(shard).is_file()))
}

#[cfg(unix)]
fn link_or_copy(_dir: &Path, etag: &str, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(Path::new("../../blobs").join(etag), path)
}

#[cfg(not(unix))]
fn link_or_copy(dir: &Path, etag: &str, path: &Path) -> io::Result<()> {
    fs::copy(dir.join("blobs").join(etag), path).map(drop)
}
