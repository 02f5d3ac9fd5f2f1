//! What can be wrong with a `weight.bin`, while it is written and when it is read.

use std::io;
use std::path::PathBuf;

use crate::{DType, TensorType};

/// Why blobs could not be written or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each message names its fields")]
pub enum BlobError {
    #[error("cannot write the weight blobs")]
    Write(#[source] io::Error),
    #[error("{dtype} values cannot stand in a weight blob")]
    NotStorable { dtype: DType },
    #[error("{elements} {dtype} values are too many for one blob")]
    TooLarge { dtype: DType, elements: usize },
    #[error("blob at offset {offset}: {declared} bytes declared, {given} given")]
    WrongSize { offset: u64, declared: u64, given: u64 },
    #[error("blob at offset {offset}: the {padding} unused bits of its last byte are not 0")]
    DirtyPadding { offset: u64, padding: u32 },
    #[error("blob at offset {offset} was begun and not finished")]
    Unfinished { offset: u64 },
    #[error("{declared} blobs declared, {given} written")]
    WrongCount { declared: u32, given: u32 },

    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {what}: expected {expected}, found {found}", path.display())]
    Header { path: PathBuf, what: &'static str, expected: String, found: String },
    #[error("{}: record {index} at offset {offset}: {what}: expected {expected}, found {found}", path.display())]
    Record { path: PathBuf, index: u32, offset: u64, what: &'static str, expected: String, found: String },
    #[error("{}: no blob record begins at offset {offset}", path.display())]
    NoRecord { path: PathBuf, offset: u64 },
    #[error(
        "{}: record {index} at offset {offset}: expected {expected}, found {elements} {dtype} values",
        path.display()
    )]
    WrongType { path: PathBuf, index: u32, offset: u64, expected: TensorType, dtype: DType, elements: usize },
    #[error("a literal of type {ty} holds {found}, not {ty} values")]
    Literal { ty: TensorType, found: String },
}
