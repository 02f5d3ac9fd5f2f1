//! Why a checkpoint was refused.

use std::path::PathBuf;

use super::Shape;

/// A checkpoint that cannot be used; the message names file or tensor, what was expected and what was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The configuration was refused.
    #[error(transparent)]
    Config(#[from] crate::ConfigError),
    /// The directory holds no safetensors weights.
    #[error("no model.safetensors and no model.safetensors.index.json in {}", dir.display())]
    NoWeights {
        /// The directory.
        dir: PathBuf,
    },
    /// A file is missing or unreadable.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// File that was wanted.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not valid safetensors: truncated, or its header is damaged.
    #[error("{} is truncated or damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The index of shards is not what it should be.
    #[error("{}: {reason}", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor that the configuration calls for is not stored.
    #[error("tensor `{}` {expected} is missing from the checkpoint", names.join("` or `"))]
    MissingTensor {
        /// Names it could have had.
        names: Vec<String>,
        /// Shape it should have.
        expected: Shape,
    },
    /// A tensor has another shape than the configuration calls for.
    #[error("tensor `{name}` in {}: expected shape {expected}, found {found:?}", file.display())]
    WrongShape {
        /// Name of the tensor.
        name: String,
        /// File that holds it.
        file: PathBuf,
        /// Shape it should have.
        expected: Shape,
        /// Shape it has.
        found: Vec<usize>,
    },
    /// A tensor has an element type that lone does not read.
    #[error("tensor `{name}` in {}: expected BF16, F16 or F32 elements, found {found}", file.display())]
    WrongType {
        /// Name of the tensor.
        name: String,
        /// File that holds it.
        file: PathBuf,
        /// The element type, as safetensors names it.
        found: String,
    },
}
