//! Why a package could not be made ready for Core ML.

use std::path::PathBuf;

use lone_mil::BackendError;
use lone_mil::package::PackageError;

use crate::Fault;

/// Why the backend could not load a package.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CoremlError {
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("Core ML cannot compile {}: {fault}", package.display())]
    Compile { package: PathBuf, fault: Fault },
    #[error("Core ML cannot load function `{function}` of {}: {fault}", package.display())]
    Load { package: PathBuf, function: String, fault: Fault },
    #[error("no array for `{port}` of function `{function}`: {fault}")]
    Array { function: String, port: String, fault: Fault },
    #[error("Core ML has no plan for function `{function}` of {}: {fault}", package.display())]
    Plan { package: PathBuf, function: String, fault: Fault },
}

impl From<CoremlError> for BackendError {
    fn from(error: CoremlError) -> Self {
        BackendError::Package(error.into())
    }
}

/// There is no Core ML here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Core ML is part of macOS, and this is {}", std::env::consts::OS)]
pub struct Unavailable;
