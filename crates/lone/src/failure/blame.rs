//! Whose fault a library's error is, and what to do about it.

use std::error::Error;

use lone_bundle::BundleError;
use lone_lfm::CheckpointError;
use lone_mil::package::PackageError;

use super::{Failure, UserError};

/// `error` and what caused it, in one line. Causes that the message already ends with are not repeated.
fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let hint = match &error {
            BundleError::NotABundle { .. } => {
                Some("make one with `lone convert`, or give a checkpoint with --model")
            }
            BundleError::MissingFile { .. } | BundleError::FileSize { .. } => {
                Some("copy the bundle again, or convert the checkpoint again")
            }
            _ => None,
        };
        Failure::User(UserError { message: chain(&error), hint: hint.map(str::to_owned) })
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let hint = match &error {
            CheckpointError::NoWeights { .. } => {
                Some("lone reads safetensors checkpoints, not GGUF or other formats")
            }
            CheckpointError::Damaged { .. } => Some("copy or download the file again"),
            _ => None,
        };
        Failure::User(UserError { message: chain(&error), hint: hint.map(str::to_owned) })
    }
}

impl From<PackageError> for Failure {
    fn from(error: PackageError) -> Self {
        Failure::user(chain(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = || io::Error::other("disk on fire");
        let quiet = Outer { text: "cannot read x", source: cause() };
        assert_eq!(chain(&quiet), "cannot read x: disk on fire");
        let telling = Outer { text: "cannot read x: disk on fire", source: cause() };
        assert_eq!(chain(&telling), "cannot read x: disk on fire");
    }
}
