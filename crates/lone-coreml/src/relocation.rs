//! Directories brought elsewhere: what Core ML has compiled lies in the system's temporary directory, which may be on another volume.

use std::fs;
use std::io;
use std::path::Path;

/// Moves the directory `from` to `to`, where nothing is yet. Whatever comes of it, nothing is left at `from`: it may be gigabytes that
/// nobody would look for.
///
/// # Errors
/// If it can be neither moved nor copied; then part of it may be at `to`.
pub(crate) fn relocate(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    let copied = copy(from, to);
    fs::remove_dir_all(from).ok();
    copied
}

/// Copies the directory `from` to `to`, where nothing is yet.
///
/// # Errors
/// If anything in it cannot be copied.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_moved_or_copied_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second, third] = ["first", "second", "third"].map(|name| dir.path().join(name));
        fs::create_dir_all(first.join("weights")).unwrap();
        fs::write(first.join("weights/weight.bin"), "weights").unwrap();
        relocate(&first, &second).unwrap();
        assert!(!first.exists());
        copy(&second, &third).unwrap();
        for place in [second, third] {
            assert_eq!(fs::read_to_string(place.join("weights/weight.bin")).unwrap(), "weights");
        }
    }

    #[test]
    fn what_cannot_be_brought_to_its_place_is_not_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
        fs::create_dir(&from).unwrap();
        fs::write(&to, "in the way").unwrap();
        assert!(relocate(&from, &to).is_err());
        assert!(!from.exists() && to.is_file());
    }
}
