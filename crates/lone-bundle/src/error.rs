//! Why a bundle is refused.

use std::path::PathBuf;

/// Why a bundle cannot be read, or must not be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BundleError {
    #[error("{} is not a bundle: it has no bundle.json", dir.display())]
    NotABundle { dir: PathBuf },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: not a valid bundle description: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error(
        "the bundle has schema {found}, and this version of lone reads up to {known}; update lone, or convert the checkpoint again"
    )]
    NewerSchema { found: u32, known: u32 },
    #[error("bundle.json: {field}: expected {expected}, found {found}")]
    Inconsistent { field: String, expected: String, found: String },
    #[error("the bundle's file {} is missing", path.display())]
    MissingFile { path: PathBuf },
    #[error("{}: expected {expected} bytes, found {found}: the file is damaged or the copy incomplete", path.display())]
    FileSize { path: PathBuf, expected: u64, found: u64 },
    #[error("{} is not as it was written: its hash is another", path.display())]
    FileHash { path: PathBuf },
}
