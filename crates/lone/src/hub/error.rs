//! Why a checkpoint could not be fetched, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::RepoSpec;
use crate::failure::{Failure, UserError};

/// Why a checkpoint could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HubError {
    #[error("{repo} has not been downloaded completely, and HF_HUB_OFFLINE forbids to ask the hub")]
    Offline { repo: RepoSpec },
    #[error("{endpoint} has no model {repo}, and there is no such directory here")]
    NoModel { repo: RepoSpec, endpoint: String },
    #[error("{} has no revision `{}`", repo.id(), repo.revision)]
    NoRevision { repo: RepoSpec },
    #[error("{repo} has no file {file}")]
    NoFile { repo: RepoSpec, file: String },
    #[error("{endpoint} does not show {repo} to {}", if *with_token { "the owner of this token" } else { "strangers" })]
    Unauthorized { repo: RepoSpec, endpoint: String, with_token: bool },
    #[error("{repo} is not open to everybody: its licence must be accepted first")]
    Gated { repo: RepoSpec, endpoint: String },
    #[error("{url} answered {status}")]
    Status { url: String, status: u16 },
    #[error("cannot reach {url}: {}", cause(source))]
    Network { url: String, source: ureq::Error },
    #[error("{url} sent {found} of {expected} bytes, then closed the connection")]
    Truncated { url: String, expected: u64, found: u64 },
    #[error("{url}: the answer is not what a hub sends: {what}")]
    Protocol { url: String, what: String },
    #[error("{file}: expected {expected} bytes, found {found}; what came was deleted")]
    Size { file: String, expected: u64, found: u64 },
    #[error("{file}: expected SHA-256 {expected}, found {found}; what came was deleted")]
    Hash { file: String, expected: String, found: String },
    #[error("{repo} is not a checkpoint lone can read: it has no {missing}")]
    NotACheckpoint { repo: RepoSpec, missing: &'static str },
    #[error(transparent)]
    Config(#[from] lone_lfm::ConfigError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("what has arrived of {file} is kept; the same command continues there")]
    Interrupted { file: String },
}

impl HubError {
    /// Whether another attempt may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            HubError::Network { source, .. } => !matches!(
                source,
                ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::InvalidProxyUrl
            ),
            HubError::Truncated { .. } => true,
            HubError::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            _ => false,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            HubError::Offline { .. } => "unset HF_HUB_OFFLINE".into(),
            HubError::NoModel { .. } => {
                "check the spelling; a local checkpoint is given as its directory".into()
            }
            HubError::NoRevision { repo } => format!("--model {} takes the main branch", repo.id()),
            HubError::Unauthorized { with_token: false, endpoint, .. } => format!(
                "check the spelling; if the model is private, set HF_TOKEN (tokens: {endpoint}/settings/tokens)"
            ),
            HubError::Unauthorized { with_token: true, .. } => {
                "check the spelling, and whether HF_TOKEN may read the model".into()
            }
            HubError::Gated { repo, endpoint } => {
                format!("accept it at {endpoint}/{} and set HF_TOKEN", repo.id())
            }
            HubError::Network { .. } => {
                "check the connection, HF_ENDPOINT and proxy settings; what has arrived is kept".into()
            }
            HubError::Truncated { .. } | HubError::Status { .. } => {
                "try again later; what has arrived is kept".into()
            }
            HubError::Size { .. } | HubError::Hash { .. } => "run the command again".into(),
            HubError::NotACheckpoint { .. } => {
                "lone reads safetensors checkpoints, not GGUF or other formats".into()
            }
            HubError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space, or set HF_HOME to a directory on a larger disk".into()
            }
            HubError::NoFile { .. }
            | HubError::Protocol { .. }
            | HubError::Config(_)
            | HubError::Io { .. }
            | HubError::Interrupted { .. } => return None,
        })
    }
}

/// What went wrong, without the library's word for its kind.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        if let HubError::Interrupted { .. } = error {
            return Failure::Interrupted(error.to_string());
        }
        Failure::User(UserError { message: error.to_string(), hint: error.hint() })
    }
}
