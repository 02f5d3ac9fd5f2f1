//! Why a command ends without success, and whose fault it is.
//!
//! What the user can mend is a [`UserError`]: one line, perhaps with a hint that is a command or a flag, exit code 1.
//! What only we can mend is internal: exit code 2. Usage errors never come here; clap ends them with its own 2, but for those
//! that only the converter can tell, which end likewise.

mod blame;

use std::fmt;

use crate::interrupt;

/// How a command can end without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user's fault, or their system's.
    User(UserError),
    /// A flag's value that does not go with the other flags, or with the model.
    Usage(UserError),
    /// Ours.
    Internal(anyhow::Error),
    /// Ctrl-C, and what became of the work.
    Interrupted(String),
    /// The reader of our output has gone, as in `lone … | head -1`: not an error.
    OutputClosed,
    /// Our output cannot be written, as on a full disk: there is no point in going on.
    OutputFailed(UserError),
}

/// Something wrong with what the user gave us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UserError {
    /// One line, without `error:` and without a full stop.
    pub(crate) message: String,
    /// What to do about it: a command or a flag.
    pub(crate) hint: Option<String>,
}

impl UserError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        UserError { message: message.to_string(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

impl Failure {
    /// A user error without a hint.
    pub(crate) fn user(message: impl fmt::Display) -> Self {
        Failure::User(UserError::new(message))
    }

    /// Something that should not have been possible.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Failure::Internal(anyhow::Error::msg(message.to_string()))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::User(_) | Failure::OutputFailed(_) => 1,
            Failure::Usage(_) | Failure::Internal(_) => 2,
            Failure::Interrupted(_) => interrupt::EXIT_CODE,
            Failure::OutputClosed => 0,
        }
    }
}

impl From<UserError> for Failure {
    fn from(error: UserError) -> Self {
        Failure::User(error)
    }
}
