//! The bundle a command works on: one that was named, or that of a checkpoint, converted on first use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lone_bundle::{Bundle, DamagedFile};
use lone_convert::ConvertOptions;
use lone_lfm::{Tokenizer, TokenizerError};

use crate::args::{ConversionArgs, SourceArgs};
use crate::commands::Context;
use crate::failure::{Failure, UserError};
use crate::source::{CheckpointDir, ModelSource};
use crate::ui::Ui;
use crate::{conversion, converted};

/// Where a bundle comes from.
pub(crate) enum BundleSource {
    /// It is there.
    Named(PathBuf),
    /// This checkpoint's, converted so.
    Converted(ModelSource, Box<ConvertOptions>),
}

impl BundleSource {
    /// Looks at what can be seen at once: whether what is named is there, and whether the flags make sense.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn resolve(source: &SourceArgs, conversion: &ConversionArgs) -> Result<Self, Failure> {
        if let Some(dir) = &source.bundle {
            Bundle::open(dir)?;
            return Ok(BundleSource::Named(dir.clone()));
        }
        let model = source.model.as_deref().expect("clap requires a bundle or a model");
        let options = conversion::options(conversion)?;
        Ok(BundleSource::Converted(ModelSource::resolve(model)?, Box::new(options)))
    }

    /// Its directory. A checkpoint is fetched first if need be, and only converted if `check` likes it.
    ///
    /// # Errors
    /// As fetching, `check` and converting have it.
    pub(crate) fn directory(
        &self,
        context: &Context,
        check: impl FnOnce(&CheckpointDir) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        match self {
            BundleSource::Named(dir) => Ok(dir.clone()),
            BundleSource::Converted(model, options) => {
                let checkpoint = model.checkpoint(context)?;
                check(&checkpoint)?;
                converted::bundle_of(&checkpoint, options, context)
            }
        }
    }
}

/// The tokenizer in `dir`, if there is one.
///
/// # Errors
/// If it is damaged.
pub(crate) fn tokenizer(dir: &Path) -> Result<Option<Arc<Tokenizer>>, Failure> {
    match Tokenizer::open(dir) {
        Ok(tokenizer) => Ok(Some(Arc::new(tokenizer))),
        Err(TokenizerError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Compares every file of the bundle in `dir` with its size and hash, and returns those that differ.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn damaged_files(bundle: &Bundle, dir: &Path, ui: &Ui) -> Result<Vec<DamagedFile>, Failure> {
    let mut progress = ui.progress("checking", bundle.files.iter().map(|file| file.bytes).sum());
    Ok(bundle.check_files(dir, |bytes| progress.advance(bytes))?)
}

/// What to do about a bundle whose files have changed.
pub(crate) const REMEDY: &str = "copy the bundle again, or convert the checkpoint again";

/// What to say of a bundle of which these files have changed.
pub(crate) fn not_as_written<'a>(bundle: &str, files: impl IntoIterator<Item = &'a str>) -> UserError {
    let files: Vec<&str> = files.into_iter().collect();
    UserError::new(format_args!("{bundle}: not as written: {}", files.join(", "))).with_hint(REMEDY)
}
