//! Why a configuration was refused.

use std::path::PathBuf;

/// A config.json or generation_config.json that cannot be used; the message names file or field, what was expected
/// and what was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is missing or unreadable.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// File that was wanted.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a JSON object.
    #[error("{} is not a JSON object: {reason}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// `model_type` names another architecture.
    #[error("config.json: `model_type` is \"{found}\"; lone knows \"lfm2\" (LFM2, LFM2.5) and \"lfm3\"")]
    UnknownModel {
        /// The architecture found.
        found: String,
    },
    /// A field without a default is absent.
    #[error("config.json: `{field}` is missing")]
    Missing {
        /// Full name of the field, with its older spellings.
        field: String,
    },
    /// A field has the wrong type or a value out of range.
    #[error("{file}: `{field}` must be {expected}, found {found}")]
    Invalid {
        /// `config.json` or `generation_config.json`.
        file: &'static str,
        /// Full name of the field.
        field: String,
        /// What would have been accepted.
        expected: String,
        /// What stands there, as JSON.
        found: String,
    },
    /// A feature of the format that lone does not model.
    #[error("config.json: `{field}` {found} is not supported; {supported}")]
    Unsupported {
        /// Full name of the field.
        field: String,
        /// What stands there, as JSON.
        found: String,
        /// What lone models instead.
        supported: &'static str,
    },
}
