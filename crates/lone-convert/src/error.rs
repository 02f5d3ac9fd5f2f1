//! Why a conversion was refused or broke off; nothing is left behind in either case.

use std::io;
use std::path::{Path, PathBuf};

use lone_bundle::BundleError;
use lone_lfm::{ChatError, TokenizerError};
use lone_mil::package::PackageError;
use lone_mil::{BlobError, BuildError};

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum ConvertError {
    #[error("{option} must be {expected}, found {found}")]
    Option { option: &'static str, expected: String, found: usize },
    #[error("{first} and {second} do not go together: {why}")]
    Conflict { first: &'static str, second: &'static str, why: &'static str },
    #[error("{what} is {found}, and the Neural Engine has at most {most} channels")]
    TooWide { what: &'static str, found: usize, most: usize },
    #[error(
        "tensor `{tensor}` in {} has {non_finite} elements that are not finite and {too_large} beyond ±65504, \
         which fp16 cannot hold",
        path.display()
    )]
    Range { tensor: String, path: PathBuf, non_finite: usize, too_large: usize },

    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    ChatTemplate(#[from] ChatError),

    #[error("cannot calibrate: {reason}")]
    Calibration { reason: String },

    #[error("{} exists; --force replaces a bundle", out.display())]
    Exists { out: PathBuf },
    #[error("{} is being written by another conversion", out.display())]
    Busy { out: PathBuf },
    #[error("{} exists and is no bundle, or holds more than a bundle; only a bundle can be replaced", out.display())]
    NotReplaceable { out: PathBuf },
    #[error("{} is not the name of a directory to create", out.display())]
    NoName { out: PathBuf },
    #[error(
        "no space{} left: the bundle in {} needs at least {needed_bytes} bytes{}",
        // A disk that is full in the midst of writing may have bytes, but no more files.
        if free_bytes.is_none() { " (or no inodes)" } else { "" },
        dir.display(),
        free_bytes.map(|free| format!(", and {free} are free")).unwrap_or_default()
    )]
    NoSpace { dir: PathBuf, needed_bytes: u64, free_bytes: Option<u64> },
    #[error("cannot {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error("cannot write {}", path.display())]
    Weights { path: PathBuf, source: Box<BlobError> },
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("interrupted")]
    Cancelled,

    #[error("the converter built a wrong graph")]
    Graph(#[from] BuildError),
}

impl ConvertError {
    pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| ConvertError::Io { action, path: path.into(), source }
    }

    /// Says why there can be no calibration.
    pub(crate) fn calibration(reason: impl ToString) -> Self {
        ConvertError::Calibration { reason: reason.to_string() }
    }

    /// Whether the fault is lone's own, and not the input's or the machine's.
    pub fn is_internal(&self) -> bool {
        matches!(self, ConvertError::Graph(_))
    }

    /// The same error, said in bytes if it is that of a full disk: `needed_bytes` in all, in `dir`.
    pub(crate) fn with_space(self, dir: &Path, needed_bytes: u64) -> Self {
        let full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        match self.io_kind() {
            Some(kind) if full(kind) => {
                ConvertError::NoSpace { dir: dir.into(), needed_bytes, free_bytes: None }
            }
            _ => self,
        }
    }

    fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            ConvertError::Io { source, .. }
            | ConvertError::Package(PackageError::Io { source, .. })
            | ConvertError::Bundle(BundleError::Io { source, .. }) => Some(source.kind()),
            ConvertError::Weights { source, .. } => match &**source {
                BlobError::Write(source) => Some(source.kind()),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fills_up_while_writing_may_have_run_out_of_files() {
        let error = |kind: io::ErrorKind| ConvertError::io("create", Path::new("b/f"))(kind.into());
        let full = error(io::ErrorKind::StorageFull).with_space(Path::new("b"), 7);
        assert_eq!(full.to_string(), "no space (or no inodes) left: the bundle in b needs at least 7 bytes");
        let other = error(io::ErrorKind::NotFound).with_space(Path::new("b"), 7);
        assert_eq!(other.to_string(), "cannot create b/f");
    }
}
