//! Checkpoints converted on first use: bundles in the cache, found again by what they were made of.
//!
//! A bundle's directory is named by a hash over the checkpoint's path, the sizes and times of its files and of the
//! calibration text, the options and the version of lone, so a change of any of them converts anew.

use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use lone_bundle::{Bundle, BundleError, SCHEMA};
use lone_convert::{Calibration, ConvertOptions};

use crate::commands::Context;
use crate::conversion;
use crate::failure::{Failure, UserError};
use crate::lock;
use crate::source::CheckpointDir;

/// The bundle of the checkpoint at `source`, converted first if need be.
///
/// # Errors
/// As the conversion has it, or if the cache cannot be used.
pub(crate) fn bundle_of(
    source: &CheckpointDir,
    options: &ConvertOptions,
    context: &Context,
) -> Result<PathBuf, Failure> {
    let bundles = context.cache_dir()?.join("bundles");
    let identity = identity(&source.dir, options).map_err(|error| {
        UserError::new(format_args!("cannot read the directory {}: {error}", source.dir.display()))
    })?;
    let bundle = bundles.join(format!("{}-{identity}", source.name));
    // What may be wrong with it is said below, once.
    if Bundle::open(&bundle).is_ok() {
        return Ok(bundle);
    }
    let waiting = || context.ui.note("another process is converting this model; waiting for it");
    let lock = lock::acquire(&bundles.join(format!(".{identity}.lock")), &context.interrupt, waiting);
    let lock = lock.map_err(|error| {
        UserError::new(format_args!("cannot use the cache {}: {error}", bundles.display()))
            .with_hint("set LONE_CACHE to a directory that can be written, or use `lone convert`")
    })?;
    if lock.is_none() {
        return Err(Failure::Interrupted("nothing was converted".into()));
    }
    // Whoever held the lock may just have converted it.
    if !is_usable(&bundle, context) {
        context.ui.note(format_args!("converting {} on first use, to {}", source.name, bundle.display()));
        remove(&bundle)?;
        conversion::convert(source, &bundle, options, true, context)?;
    }
    Ok(bundle)
}

/// Whether a bundle is there and whole; one that is damaged is named before it is made anew.
fn is_usable(bundle: &Path, context: &Context) -> bool {
    match Bundle::open(bundle) {
        Ok(_) => true,
        Err(BundleError::NotABundle { .. }) => false,
        Err(error) => {
            context.ui.warn(format_args!("{error}; converting again"));
            false
        }
    }
}

/// Removes what is left of a bundle that cannot be used. The cache is ours: nothing else can be there.
fn remove(bundle: &Path) -> Result<(), UserError> {
    match std::fs::remove_dir_all(bundle) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(UserError::new(format_args!("cannot remove the damaged {}: {error}", bundle.display())))
        }
        _ => Ok(()),
    }
}

/// 16 hexadecimal digits over everything a bundle depends on.
fn identity(checkpoint: &Path, options: &ConvertOptions) -> io::Result<String> {
    let checkpoint = checkpoint.canonicalize()?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&checkpoint)? {
        let path = entry?.path();
        let read =
            path.extension().is_some_and(|ext| ["json", "jinja", "safetensors"].iter().any(|x| ext == *x));
        if read {
            let state = state(&path)?;
            files.push((path, state));
        }
    }
    files.sort();
    if let Some(Calibration::File(text)) = &options.calibrate {
        // The conversion says what is wrong with a text that is not there.
        let (place, state) = (text.canonicalize(), state(text));
        files.extend(place.ok().zip(state.ok()));
    }
    let parts = format!("{checkpoint:?} {files:?} {options:?} {} {SCHEMA}", env!("CARGO_PKG_VERSION"));
    Ok(blake3::hash(parts.as_bytes()).to_hex()[..16].to_owned())
}

/// Size, and time of the last change in nanoseconds, of a file; of the file itself where the path is a link's, as in the
/// hub's cache.
fn state(path: &Path) -> io::Result<(u64, u128)> {
    let metadata = std::fs::metadata(path)?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((metadata.len(), modified.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_calibration_text_under_the_same_name_is_another_identity() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text.txt");
        let calibrate = Some(Calibration::File(text.clone()));
        let options = ConvertOptions { calibrate, ..ConvertOptions::default() };
        let mut identities = vec![identity(dir.path(), &options).unwrap()];
        for content in ["one", "another"] {
            std::fs::write(&text, content).unwrap();
            identities.push(identity(dir.path(), &options).unwrap());
            assert_eq!(identity(dir.path(), &options).unwrap(), identities[identities.len() - 1]);
        }
        identities.sort();
        identities.dedup();
        assert_eq!(identities.len(), 3);
    }

    #[test]
    fn another_file_another_option_and_another_place_are_another_identity() {
        let dir = tempfile::tempdir().unwrap();
        let options = ConvertOptions::default();
        std::fs::write(dir.path().join("config.json"), "{}").unwrap();
        let first = identity(dir.path(), &options).unwrap();
        assert_eq!(identity(&dir.path().join("."), &options).unwrap(), first);
        assert_ne!(identity(dir.path(), &ConvertOptions { ctx: vec![7], ..options.clone() }).unwrap(), first);
        std::fs::write(dir.path().join("notes.txt"), "not read").unwrap();
        assert_eq!(identity(dir.path(), &options).unwrap(), first);
        std::fs::write(dir.path().join("config.json"), "{ }").unwrap();
        assert_ne!(identity(dir.path(), &options).unwrap(), first);
    }
}
