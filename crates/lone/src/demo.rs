//! The model this program carries, so that `--model demo` works anywhere, without a network.

use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

use crate::failure::{Failure, UserError};

/// What `--model` calls it.
pub(crate) const NAME: &str = "demo";

/// What the model itself is called.
pub(crate) const MODEL_NAME: &str = "tiny-lfm3";

#[cfg(feature = "demo")]
const FILES: &[(&str, &[u8])] = {
    macro_rules! file {
        ($name:literal) => {
            ($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-lfm3/", $name)))
        };
    }
    &[
        file!("config.json"),
        file!("generation_config.json"),
        file!("tokenizer.json"),
        file!("tokenizer_config.json"),
        file!("chat_template.jinja"),
        file!("model.safetensors"),
    ]
};

#[cfg(not(feature = "demo"))]
const FILES: &[(&str, &[u8])] = &[];

/// Puts the checkpoint in the cache, unless it is there, and returns its directory. Files that are not what this
/// program carries are put there again. The directory's name holds a hash of the content, so another version of the
/// program does not mistake this one's for its own.
///
/// # Errors
/// If this program was built without the model, or the cache cannot be written.
pub(crate) fn unpack(cache: &Path) -> Result<PathBuf, Failure> {
    if FILES.is_empty() {
        return Err(UserError::new("this lone was built without the demo model")
            .with_hint("build it with `--features demo`, or give --model another checkpoint")
            .into());
    }
    let models = cache.join("models");
    let dir = models.join(format!("{MODEL_NAME}-{}", content_hash()));
    let written = if dir.is_dir() { repair(&models, &dir) } else { write(&models, &dir) };
    written.map_err(|error| {
        let error =
            UserError::new(format_args!("cannot unpack the demo model to {}: {error}", dir.display()));
        error.with_hint("set LONE_CACHE to a directory that can be written")
    })?;
    Ok(dir)
}

fn write(models: &Path, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(models)?;
    let unpacked = staging(models)?;
    for (name, content) in FILES {
        fs::write(unpacked.path().join(name), content)?;
    }
    match fs::rename(unpacked.path(), dir) {
        // Another process was faster; its files are the same.
        Err(_) if dir.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            // The directory has its final name, so there is nothing left to delete.
            let _renamed = unpacked.keep();
            Ok(())
        }
    }
}

/// Replaces the files that differ, one at a time, so that whoever reads them sees the old or the new.
fn repair(models: &Path, dir: &Path) -> io::Result<()> {
    let differs =
        |(name, content): &&(&str, &[u8])| !fs::read(dir.join(name)).is_ok_and(|found| found == *content);
    for (name, content) in FILES.iter().filter(differs) {
        let unpacked = staging(models)?;
        let file = unpacked.path().join(name);
        fs::write(&file, content)?;
        fs::rename(file, dir.join(name))?;
    }
    Ok(())
}

fn staging(models: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(".demo-").tempdir_in(models)
}

fn content_hash() -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, content) in FILES {
        hasher.update(name.as_bytes());
        hasher.update(content);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(all(test, feature = "demo"))]
mod tests {
    use super::*;

    #[test]
    fn the_demo_model_is_unpacked_once_and_leaves_nothing_else() {
        let cache = tempfile::tempdir().unwrap();
        let dir = unpack(cache.path()).unwrap();
        assert_eq!(std::fs::read(dir.join("config.json")).unwrap(), FILES[0].1);
        assert_eq!(unpack(cache.path()).unwrap(), dir);
        assert_eq!(std::fs::read_dir(cache.path().join("models")).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_file_of_the_demo_model_is_put_there_again() {
        let cache = tempfile::tempdir().unwrap();
        let dir = unpack(cache.path()).unwrap();
        let mut damaged = FILES[0].1.to_vec();
        damaged[0] ^= 1;
        fs::write(dir.join(FILES[0].0), damaged).unwrap();
        fs::write(dir.join(FILES[1].0), "").unwrap();
        fs::remove_file(dir.join(FILES[2].0)).unwrap();
        assert_eq!(unpack(cache.path()).unwrap(), dir);
        for (name, content) in FILES {
            assert!(fs::read(dir.join(name)).unwrap() == *content, "{name}");
        }
        assert_eq!(fs::read_dir(cache.path().join("models")).unwrap().count(), 1);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let Err(Failure::User(error)) = unpack(file.path()) else { panic!("a file passed for a cache") };
        assert!(error.message.contains(file.path().to_str().unwrap()), "{}", error.message);
    }
}
