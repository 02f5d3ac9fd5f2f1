//! A file that is written beside its target, and takes its name when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use lone_convert::partial::{self, Lock};

/// Dropping one that was not finished removes it. What a killed process leaves is removed by [`Unfinished::beside`].
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    file: File,
    /// Held as long as the file is ours; `None` where files cannot be locked.
    _lock: Option<File>,
}

impl Unfinished {
    /// Begins a file, readable by its owner alone. What no living process writes in that directory, and `is_of_ours`,
    /// is removed first.
    pub(super) fn beside(target: &Path, is_of_ours: impl Fn(&Path) -> bool) -> io::Result<Self> {
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        // Where there is no directory, the reason should not name an unfinished file.
        fs::metadata(directory)?;
        remove_abandoned(directory, is_of_ours);
        let mut name = partial::prefix(target.file_name().ok_or(io::ErrorKind::InvalidFilename)?);
        name.push(std::process::id().to_string());
        let path = directory.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = partial::create_locked(&path, |path| options.open(path).map(drop))?;
        let opened = OpenOptions::new().write(true).open(&path);
        let file = opened.inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(Unfinished { path, file, _lock: lock })
    }

    /// What is to be written to.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives it the name of `target`, in place of what has that. It is on the disk before.
    pub(super) fn finish(mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.path != Path::new("") {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn remove_abandoned(directory: &Path, is_of_ours: impl Fn(&Path) -> bool) {
    let files = partial::all_in(directory).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    for path in files.map(|entry| entry.path()).filter(|path| is_of_ours(path)) {
        if let Lock::Ours(_held) = partial::lock(&path) {
            // Failure is no reason to write nothing.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn it_has_the_name_of_its_target_when_it_is_whole_or_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("kept");
        let unfinished = Unfinished::beside(&target, |_| true).unwrap();
        assert_eq!(names(directory.path()), [format!(".kept.partial-{}", std::process::id())]);
        unfinished.file().write_all(b"all").unwrap();
        unfinished.finish(&target).unwrap();
        assert_eq!(
            (names(directory.path()), fs::read(&target).unwrap()),
            (vec!["kept".into()], b"all".to_vec())
        );
        drop(Unfinished::beside(&target, |_| true).unwrap());
        assert_eq!(names(directory.path()), ["kept"]);
    }

    #[test]
    fn what_dead_processes_left_is_removed_and_what_live_ones_write_or_is_not_ours_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in [".a.partial-1", ".b.partial-2", ".live.partial-3", ".foreign.partial-4", "a.partial-5"] {
            fs::write(path(name), "").unwrap();
        }
        let Lock::Ours(writer) = partial::lock(&path(".live.partial-3")) else { panic!("it is free") };
        let is_of_ours = |path: &Path| !path.to_str().unwrap().contains("foreign");
        drop(Unfinished::beside(&path("a"), is_of_ours).unwrap());
        assert_eq!(names(directory.path()), [".foreign.partial-4", ".live.partial-3", "a.partial-5"]);
        drop(writer);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let unfinished = Unfinished::beside(&directory.path().join("kept"), |_| true).unwrap();
        assert_eq!(unfinished.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
