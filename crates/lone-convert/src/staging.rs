//! A whole bundle or none: everything is written into a sibling of the target, which takes its name at the end.
//!
//! ```text
//! bundles/.NAME.partial-PID/    while writing, locked by the process that writes
//! bundles/NAME/                 once complete
//! ```
//! Dropping a [`Staging`] that was not committed removes all of it, on errors and panics alike. What a killed process
//! leaves is unlocked, and removed by the next conversion to the same target.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::ConvertError;

/// Where a bundle is to be.
#[derive(Debug)]
pub(crate) struct Target {
    out: PathBuf,
    parent: PathBuf,
    /// What the names of unfinished siblings begin with.
    partial_prefix: OsString,
}

/// A directory that is filled, and then becomes the bundle.
#[derive(Debug)]
pub(crate) struct Staging {
    target: Target,
    dir: PathBuf,
    /// Held as long as the directory is ours; `None` where directories cannot be locked.
    _lock: Option<File>,
    /// Directories above that were made for it, innermost first.
    made_parents: Vec<PathBuf>,
}

/// Refuses what [`convert`](crate::convert) would refuse of `out`, before there is anything to convert.
///
/// # Errors
/// [`ConvertError::Exists`], [`ConvertError::NotReplaceable`] or [`ConvertError::NoName`].
pub fn check_target(out: &Path, force: bool) -> Result<(), ConvertError> {
    Target::new(out, force).map(drop)
}

impl Target {
    /// Refuses a target that is not a bundle, and without `force` one that is.
    pub(crate) fn new(out: &Path, force: bool) -> Result<Self, ConvertError> {
        let name = out.file_name().ok_or_else(|| ConvertError::NoName { out: out.into() })?;
        let parent = match out.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let mut partial_prefix = OsString::from(".");
        partial_prefix.push(name);
        partial_prefix.push(".partial-");
        if fs::symlink_metadata(out).is_ok() {
            if !is_replaceable(out) {
                return Err(ConvertError::NotReplaceable { out: out.into() });
            }
            if !force {
                return Err(ConvertError::Exists { out: out.into() });
            }
        }
        Ok(Target { out: out.into(), parent, partial_prefix })
    }

    /// Makes the directory to fill.
    pub(crate) fn stage(self) -> Result<Staging, ConvertError> {
        self.remove_abandoned();
        let made_parents = make_parents(&self.parent)?;
        let dir = self.partial(&std::process::id().to_string());
        let mut staging = Staging { target: self, dir: PathBuf::new(), _lock: None, made_parents };
        fs::create_dir(&dir).map_err(ConvertError::io("create", &dir))?;
        staging._lock = lock(&dir);
        staging.dir = dir;
        Ok(staging)
    }

    fn partial(&self, suffix: &str) -> PathBuf {
        let mut name = self.partial_prefix.clone();
        name.push(suffix);
        self.parent.join(name)
    }

    /// Removes unfinished siblings that no living process writes.
    fn remove_abandoned(&self) {
        let Ok(siblings) = fs::read_dir(&self.parent) else { return };
        for sibling in siblings.flatten() {
            let name = sibling.file_name();
            let ours = name.as_encoded_bytes().starts_with(self.partial_prefix.as_encoded_bytes());
            if ours && let Some(_unused) = lock(&sibling.path()) {
                // Failure is no reason to refuse: the space may not even be needed.
                let _ = fs::remove_dir_all(sibling.path());
            }
        }
    }
}

impl Staging {
    /// The directory to fill.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Gives the directory the name of the target, in place of a bundle that may be there.
    pub(crate) fn commit(mut self) -> Result<(), ConvertError> {
        let out = self.target.out.clone();
        let replaced = self.target.partial(&format!("{}-old", std::process::id()));
        let replaces = fs::symlink_metadata(&out).is_ok();
        if replaces {
            fs::rename(&out, &replaced).map_err(ConvertError::io("move aside", &out))?;
        }
        if let Err(source) = fs::rename(&self.dir, &out) {
            if replaces {
                let _ = fs::rename(&replaced, &out);
            }
            return Err(ConvertError::Io { action: "create", path: out, source });
        }
        self.made_parents.clear();
        self.dir = PathBuf::new();
        // What was moved aside belongs to nobody now. A process that was dying when this one began is dead by now.
        self.target.remove_abandoned();
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.dir != Path::new("") {
            let _ = fs::remove_dir_all(&self.dir);
        }
        for parent in &self.made_parents {
            let _ = fs::remove_dir(parent);
        }
    }
}

/// A bundle, or an empty directory.
fn is_replaceable(out: &Path) -> bool {
    out.join(lone_bundle::FILE_NAME).is_file()
        || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none())
}

/// Makes `parent` and what is missing above it; innermost first.
fn make_parents(parent: &Path) -> Result<Vec<PathBuf>, ConvertError> {
    let missing = parent.ancestors().take_while(|path| *path != Path::new("") && !path.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    fs::create_dir_all(parent).map_err(ConvertError::io("create", parent))?;
    Ok(missing)
}

/// The lock on a directory, unless another process holds it or there can be none.
fn lock(dir: &Path) -> Option<File> {
    let dir = File::open(dir).ok()?;
    dir.try_lock().ok().map(|()| dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(dir: &Path) -> Vec<OsString> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    fn stage(out: &Path, force: bool) -> Staging {
        Target::new(out, force).unwrap().stage().unwrap()
    }

    #[test]
    fn what_is_committed_is_there_whole_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/bundles/m");
        let staging = stage(&out, false);
        fs::write(staging.path().join("f"), "1").unwrap();
        assert!(!out.exists());
        staging.commit().unwrap();
        assert_eq!(fs::read(out.join("f")).unwrap(), b"1");
        assert_eq!(entries(out.parent().unwrap()), ["m"]);
    }

    #[test]
    fn what_is_dropped_or_panics_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/bundles/m");
        drop(stage(&out, false));
        let panicked = std::panic::catch_unwind(|| {
            let staging = stage(&out, false);
            fs::write(staging.path().join("f"), "1").unwrap();
            panic!("midway");
        });
        assert!(panicked.is_err());
        assert!(entries(dir.path()).is_empty());
    }

    #[test]
    fn a_bundle_is_replaced_by_force_and_only_when_its_successor_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("m");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("bundle.json"), "old").unwrap();
        assert!(matches!(Target::new(&out, false), Err(ConvertError::Exists { .. })));
        let staging = stage(&out, true);
        fs::write(staging.path().join("bundle.json"), "new").unwrap();
        assert_eq!(fs::read(out.join("bundle.json")).unwrap(), b"old");
        staging.commit().unwrap();
        assert_eq!(fs::read(out.join("bundle.json")).unwrap(), b"new");
        assert_eq!(entries(dir.path()), ["m"]);
    }

    #[test]
    fn force_never_replaces_what_is_not_a_bundle() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("precious"), "").unwrap();
        for out in [dir.path(), &dir.path().join("precious")] {
            for force in [false, true] {
                assert!(matches!(check_target(out, force), Err(ConvertError::NotReplaceable { .. })));
            }
        }
        assert!(matches!(Target::new(Path::new("/"), true), Err(ConvertError::NoName { .. })));
        assert!(matches!(Target::new(Path::new("a/.."), true), Err(ConvertError::NoName { .. })));
    }

    #[test]
    fn what_dead_processes_left_is_removed_and_what_live_ones_write_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("m");
        let abandoned = dir.path().join(".m.partial-1");
        let others = dir.path().join(".mm.partial-1");
        let live = dir.path().join(".m.partial-2");
        for dir in [&abandoned, &others, &live] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("f"), "").unwrap();
        }
        let held = lock(&live).unwrap();
        let staging = stage(&out, false);
        assert!(!abandoned.exists() && others.exists() && live.exists());
        drop((held, staging));
    }
}
