//! What can be wrong with a package, while it is written and when it is read.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use crate::{BlobError, Program, VerifyError, verify};

/// Why a package could not be written or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message names its fields")]
pub enum PackageError {
    #[error("cannot {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: {place}: expected {expected}, found {found}", path.display())]
    Manifest { path: PathBuf, place: String, expected: String, found: String },
    #[error("{}: not a Core ML model", path.display())]
    Protobuf { path: PathBuf, source: prost::DecodeError },
    #[error("{}: {place}: expected {expected}, found {found}", path.display())]
    Model { path: PathBuf, place: String, expected: String, found: String },
    #[error("{}: {fault}", path.display())]
    Program { path: PathBuf, fault: Box<VerifyError> },
    #[error("{}: {place}: {fault}", path.display())]
    Weight { path: PathBuf, place: String, fault: Box<BlobError> },
    #[error(transparent)]
    Blob(#[from] BlobError),
}

impl PackageError {
    pub(super) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| PackageError::Io { action, path: path.into(), source }
    }
}

/// Verifies the program of the model file at `path`.
pub(super) fn verify_at(path: &Path, program: &Program) -> Result<(), PackageError> {
    verify(program).map_err(|fault| PackageError::Program { path: path.into(), fault: Box::new(fault) })
}

/// Something wrong in a model. Its place grows outward, from the value to the function, as it is handed up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    place: String,
    expected: String,
    found: String,
}

impl Fault {
    pub(super) fn new(place: impl Display, expected: impl Display, found: impl Display) -> Self {
        Fault { place: place.to_string(), expected: expected.to_string(), found: found.to_string() }
    }

    /// The same fault, seen from further out.
    pub(super) fn within(self, outer: impl Display) -> Self {
        Fault { place: format!("{outer}: {}", self.place), ..self }
    }

    /// The fault as one of the file at `path`.
    pub(super) fn of(self, path: &Path) -> PackageError {
        let Fault { place, expected, found } = self;
        PackageError::Model { path: path.into(), place, expected, found }
    }
}
