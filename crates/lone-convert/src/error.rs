//! Why a conversion was refused or broke off; nothing is left behind in either case.

use std::io;
use std::path::{Path, PathBuf};

use lone_bundle::BundleError;
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

    #[error("{} exists; --force replaces a bundle", out.display())]
    Exists { out: PathBuf },
    #[error("{} exists and is not a bundle; only a bundle can be replaced", out.display())]
    NotReplaceable { out: PathBuf },
    #[error("{} is not the name of a directory to create", out.display())]
    NoName { out: PathBuf },
    #[error(
        "no space left: the bundle in {} needs at least {needed_bytes} bytes{}",
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
