//! A whole bundle or none: everything is written into a sibling of the target, which takes its name at the end.
//!
//! ```text
//! bundles/.NAME.partial-PID/    while writing, locked by the process that writes
//! bundles/NAME/                 once complete
//! ```
//! Dropping a [`Staging`] that was not committed removes all of it, on errors and panics alike. What a killed process
//! leaves is unlocked, and removed by the next conversion to the same directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use lone_bundle::{FILE_NAME, NEW_FILE_NAME};

use crate::ConvertError;
use crate::partial::{self, ATTEMPTS, Lock, OLD, lock};
use crate::write::{COMPANIONS, EMBEDDINGS_FILE};

/// Where a bundle is to be.
#[derive(Debug)]
pub(crate) struct Target {
    out: PathBuf,
    parent: PathBuf,
    /// Whether a bundle that is there may be replaced.
    force: bool,
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
    /// Refuses a target that is not a bundle, and without `force` one that is. With it a link to a bundle stands for
    /// that bundle.
    pub(crate) fn new(out: &Path, force: bool) -> Result<Self, ConvertError> {
        let linked = out.read_link().ok().filter(|_| force).and_then(|_| out.canonicalize().ok());
        let out = linked.as_deref().unwrap_or(out);
        let name = out.file_name().ok_or_else(|| ConvertError::NoName { out: out.into() })?;
        let parent = match out.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let partial_prefix = partial::prefix(name);
        if fs::symlink_metadata(out).is_ok() {
            if !is_replaceable(out) {
                return Err(ConvertError::NotReplaceable { out: out.into() });
            }
            if !force {
                return Err(ConvertError::Exists { out: out.into() });
            }
        }
        Ok(Target { out: out.into(), parent, force, partial_prefix })
    }

    /// Makes the directory to fill.
    pub(crate) fn stage(self) -> Result<Staging, ConvertError> {
        let is_written = self.remove_abandoned();
        if is_written && !self.force {
            return Err(ConvertError::Busy { out: self.out });
        }
        let made_parents = make_parents(&self.parent)?;
        let dir = self.partial(&std::process::id().to_string());
        let mut staging = Staging { target: self, dir: PathBuf::new(), _lock: None, made_parents };
        let locked = partial::create_locked(&dir, |dir| fs::create_dir(dir));
        staging._lock = locked.map_err(ConvertError::io("create", &dir))?;
        staging.dir = dir;
        Ok(staging)
    }

    fn partial(&self, suffix: &str) -> PathBuf {
        let mut name = self.partial_prefix.clone();
        name.push(suffix);
        self.parent.join(name)
    }

    /// Removes the unfinished siblings of all targets that no living process writes; returns whether one writes to
    /// this target.
    fn remove_abandoned(&self) -> bool {
        let mut is_written = false;
        let siblings = partial::all_in(&self.parent);
        for sibling in siblings.filter(|sibling| sibling.file_type().is_ok_and(|kind| kind.is_dir())) {
            let name = sibling.file_name();
            match lock(&sibling.path()) {
                Lock::Ours(_held) if !is_unfinished_bundle(&sibling.path()) => {}
                Lock::Ours(_held) => {
                    // Failure is no reason to refuse: the space may not even be needed.
                    let _ = fs::remove_dir_all(sibling.path());
                }
                Lock::Theirs => {
                    let name = name.as_encoded_bytes();
                    is_written |= name.starts_with(self.partial_prefix.as_encoded_bytes())
                        && !name.ends_with(OLD.as_bytes());
                }
                Lock::None => {}
            }
        }
        is_written
    }
}

impl Staging {
    /// The directory to fill.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Gives the directory the name of the target, with force in place of a bundle that may be there.
    ///
    /// Others may do the same at any time: without force the first one wins, and with it the last.
    pub(crate) fn commit(mut self) -> Result<(), ConvertError> {
        let mut attempts = ATTEMPTS;
        while let Err(source) = self.take_name()? {
            let out = self.target.out.clone();
            let exists = fs::symlink_metadata(&out).is_ok();
            attempts -= 1;
            match exists {
                true if !self.target.force => return Err(ConvertError::Exists { out }),
                true if attempts > 0 => {}
                _ => return Err(ConvertError::Io { action: "create", path: out, source }),
            }
        }
        self.made_parents.clear();
        self.dir = PathBuf::new();
        // A process that was dying when this one began is dead by now.
        self.target.remove_abandoned();
        Ok(())
    }

    /// One attempt to rename; what was replaced is removed, or back where it was.
    fn take_name(&self) -> Result<io::Result<()>, ConvertError> {
        let out = &self.target.out;
        if !self.target.force {
            // No system renames a directory onto one with files in it.
            return Ok(fs::rename(&self.dir, out));
        }
        let replaced = self.target.partial(&format!("{}{OLD}", std::process::id()));
        // Held, so that nobody takes what was moved aside for abandoned while it may have to come back.
        let held = lock(out);
        let replaces = match fs::rename(out, &replaced) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => {
                return Err(ConvertError::Io { action: "move aside", path: out.clone(), source });
            }
        };
        let renamed = fs::rename(&self.dir, out);
        if replaces && (renamed.is_ok() || fs::rename(&replaced, out).is_err()) {
            // Not needed any more: something newer has the name.
            let _ = fs::remove_dir_all(&replaced);
        }
        drop(held);
        Ok(renamed)
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

/// A bundle, whole or damaged, and nothing besides; or an empty directory.
fn is_replaceable(out: &Path) -> bool {
    let Some(names) = names_in(out) else { return false };
    names.is_empty()
        || names.iter().any(|name| name == FILE_NAME) && names.iter().all(|name| is_of_a_bundle(name))
}

/// What lies in a directory, if it is one that can be read.
fn names_in(dir: &Path) -> Option<Vec<OsString>> {
    let entries = fs::read_dir(dir).ok()?;
    entries.map(|entry| entry.ok().map(|entry| entry.file_name())).collect()
}

/// Whether a bundle has something of this name at its top.
fn is_of_a_bundle(name: &OsStr) -> bool {
    name == FILE_NAME
        || name == NEW_FILE_NAME
        || name == EMBEDDINGS_FILE
        || COMPANIONS.iter().any(|companion| name == *companion)
        || Path::new(name).extension().is_some_and(|extension| extension == "mlpackage")
}

/// Whether nothing is in there but what belongs to a bundle.
fn is_unfinished_bundle(dir: &Path) -> bool {
    names_in(dir).is_some_and(|names| names.iter().all(|name| is_of_a_bundle(name)))
}

/// Makes `parent` and what is missing above it; innermost first.
fn make_parents(parent: &Path) -> Result<Vec<PathBuf>, ConvertError> {
    let missing = parent.ancestors().take_while(|path| *path != Path::new("") && !path.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    fs::create_dir_all(parent).map_err(ConvertError::io("create", parent))?;
    Ok(missing)
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
        fs::write(out.join(".bundle.json.new"), "what a killed process left").unwrap();
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
        fs::write(dir.path().join("bundle.json"), "{}").unwrap();
        assert!(matches!(check_target(dir.path(), true), Err(ConvertError::NotReplaceable { .. })));
        assert!(matches!(Target::new(Path::new("/"), true), Err(ConvertError::NoName { .. })));
        assert!(matches!(Target::new(Path::new("a/.."), true), Err(ConvertError::NoName { .. })));
    }

    fn bundle(dir: &Path, content: &str) {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("bundle.json"), content).unwrap();
    }

    fn held(dir: &Path) -> File {
        match lock(dir) {
            Lock::Ours(held) => held,
            _ => panic!("{} is locked", dir.display()),
        }
    }

    #[test]
    fn what_dead_processes_left_of_any_target_is_removed_and_what_live_ones_write_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let inside = |names: [&str; 3]| names.map(|name| dir.path().join(name));
        let abandoned = inside([".m.partial-1", ".other.partial-1", ".m.partial-3-old"]);
        let foreign = inside([".m.partial-x", ".partial-1", "m.partial-1"]);
        let live = dir.path().join(".other.partial-2");
        for dir in abandoned.iter().chain(&foreign).chain([&live]) {
            bundle(dir, "");
        }
        let precious = dir.path().join(".m.partial-4");
        bundle(&precious, "");
        fs::write(precious.join("letter.txt"), "").unwrap();
        let writer = held(&live);
        let staging = stage(&dir.path().join("m"), false);
        assert!(precious.join("letter.txt").exists());
        assert!(abandoned.iter().all(|dir| !dir.exists()));
        assert!(foreign.iter().all(|dir| dir.exists()) && live.exists());
        drop((writer, staging));
    }

    #[test]
    fn without_force_the_second_of_two_conversions_to_one_target_fails() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("m");
        let staging = stage(&out, false);
        bundle(&out, "first");
        assert!(matches!(staging.commit(), Err(ConvertError::Exists { .. })));
        assert_eq!(fs::read(out.join("bundle.json")).unwrap(), b"first");
        assert_eq!(entries(dir.path()), ["m"]);
    }

    #[test]
    fn what_another_conversion_is_writing_is_refused_before_writing_unless_forced() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join(".m.partial-2");
        bundle(&live, "");
        let _writer = held(&live);
        let out = dir.path().join("m");
        assert!(matches!(Target::new(&out, false).unwrap().stage(), Err(ConvertError::Busy { .. })));
        assert_eq!(entries(dir.path()), [".m.partial-2"]);
        drop(stage(&out, true));
    }

    #[test]
    fn with_force_nothing_stays_of_a_bundle_whose_writer_has_just_finished() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("m");
        let staging = stage(&out, true);
        fs::write(staging.path().join("bundle.json"), "second").unwrap();
        bundle(&out, "first");
        let _writer = held(&out);
        staging.commit().unwrap();
        assert_eq!(fs::read(out.join("bundle.json")).unwrap(), b"second");
        assert_eq!(entries(dir.path()), ["m"]);
    }

    #[cfg(unix)]
    #[test]
    fn force_replaces_what_a_link_leads_to_and_not_the_link() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("real/m"), dir.path().join("link"));
        fs::create_dir(dir.path().join("real")).unwrap();
        bundle(&target, "old");
        std::os::unix::fs::symlink("real/m", &link).unwrap();
        assert!(matches!(Target::new(&link, false), Err(ConvertError::Exists { .. })));
        let staging = stage(&link, true);
        fs::write(staging.path().join("bundle.json"), "new").unwrap();
        staging.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(target.join("bundle.json")).unwrap(), b"new");
        assert_eq!(entries(target.parent().unwrap()), ["m"]);
    }
}
