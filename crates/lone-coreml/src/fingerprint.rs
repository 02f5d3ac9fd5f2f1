//! The hash of a package's content, which names what was compiled from it.
//!
//! Gigabytes are not read anew at every start: what a package's files looked like, their sizes and times, is
//! remembered with the hash.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use lone_mil::Keep;

use crate::CoremlError;

/// Changes whenever what is compiled from the same package changes.
const VERSION: &str = "1";
/// Hexadecimal digits of a key.
const KEY_DIGITS: usize = 32;

/// The key of `package` compiled with the values of `keep` visible. `memory` is where hashes are remembered.
///
/// # Errors
/// [`CoremlError::Io`] if the package cannot be read.
pub(crate) fn key(package: &Path, keep: &[Keep], memory: &Path) -> Result<String, CoremlError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(VERSION.as_bytes());
    hasher.update(content(package, memory)?.as_bytes());
    for Keep { function, value } in keep {
        hasher.update(format!("\n{function} {value}").as_bytes());
    }
    Ok(hasher.finalize().to_hex()[..KEY_DIGITS].to_owned())
}

/// Whether `name` could be a key.
pub(crate) fn is_key(name: &str) -> bool {
    name.len() == KEY_DIGITS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The hash of all files of `package`, their names included.
fn content(package: &Path, memory: &Path) -> Result<String, CoremlError> {
    let package = &package.canonicalize().map_err(io_error(package))?;
    let mut files = Vec::new();
    list(package, &mut files).map_err(io_error(package))?;
    files.sort();
    let looks = looks(package, &files).map_err(io_error(package))?;
    let path_hash = blake3::hash(package.as_os_str().as_encoded_bytes()).to_hex();
    let note = memory.join(&path_hash[..KEY_DIGITS]);
    if let Some(hash) = recall(&note, &looks) {
        return Ok(hash);
    }
    let mut hasher = blake3::Hasher::new();
    for file in &files {
        let name = file.strip_prefix(package).unwrap_or(file).as_os_str().as_encoded_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
        let mut file_hasher = blake3::Hasher::new();
        let read = File::open(file).and_then(|file| file_hasher.update_reader(file).map(drop));
        read.map_err(io_error(file))?;
        hasher.update(file_hasher.finalize().as_bytes());
    }
    let hash = hasher.finalize().to_hex().to_string();
    // What cannot be remembered is computed again.
    fs::create_dir_all(memory).and_then(|()| fs::write(&note, format!("{looks}\n{hash}"))).ok();
    Ok(hash)
}

fn recall(note: &Path, looks: &str) -> Option<String> {
    let text = fs::read_to_string(note).ok()?;
    let (known, hash) = text.split_once('\n')?;
    (known == looks && hash.len() == blake3::OUT_LEN * 2).then(|| hash.to_owned())
}

/// A hash of names, sizes and times of change.
fn looks(package: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let metadata = file.metadata()?;
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = file.strip_prefix(package).unwrap_or(file).display();
        hasher.update(format!("{name}\n{}\n{}\n", metadata.len(), changed.as_nanos()).as_bytes());
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CoremlError {
    move |source| CoremlError::Io { path: path.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    /// A package-like directory, and where hashes of it are remembered.
    fn package() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("a.mlpackage");
        fs::create_dir_all(package.join("Data")).unwrap();
        fs::write(package.join("Manifest.json"), "{}").unwrap();
        fs::write(package.join("Data/weight.bin"), "weights").unwrap();
        let memory = dir.path().join("memory");
        (dir, package, memory)
    }

    fn change(file: &Path, content: &str, changed: SystemTime) {
        fs::write(file, content).unwrap();
        File::options().append(true).open(file).unwrap().set_modified(changed).unwrap();
    }

    #[test]
    fn a_key_follows_content_names_and_kept_values_but_not_the_place() {
        let (dir, package, memory) = package();
        let plain = key(&package, &[], &memory).unwrap();
        assert!(is_key(&plain) && !is_key("known") && !is_key(&plain[1..]));
        let kept = Keep { function: "f".into(), value: "x".into() };
        assert_ne!(key(&package, &[kept], &memory).unwrap(), plain);

        let moved = dir.path().join("b.mlpackage");
        fs::rename(&package, &moved).unwrap();
        assert_eq!(key(&moved, &[], &memory).unwrap(), plain);

        fs::rename(moved.join("Manifest.json"), moved.join("Other.json")).unwrap();
        assert_ne!(key(&moved, &[], &memory).unwrap(), plain);
    }

    #[test]
    fn a_package_that_looks_the_same_is_not_read_again_and_one_that_does_not_is() {
        let (_dir, package, memory) = package();
        let weights = package.join("Data/weight.bin");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        change(&weights, "weights", time);
        let before = key(&package, &[], &memory).unwrap();
        change(&weights, "WEIGHTS", time);
        assert_eq!(key(&package, &[], &memory).unwrap(), before, "it was read although it looks the same");
        change(&weights, "WEIGHTS", time + Duration::from_nanos(1_000));
        assert_ne!(key(&package, &[], &memory).unwrap(), before);
    }

    #[test]
    fn a_damaged_note_is_ignored() {
        let (_dir, package, memory) = package();
        let before = key(&package, &[], &memory).unwrap();
        let note = fs::read_dir(&memory).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&note).unwrap();
        fs::write(&note, &text[..text.len() - 1]).unwrap();
        assert_eq!(key(&package, &[], &memory).unwrap(), before);
    }
}
