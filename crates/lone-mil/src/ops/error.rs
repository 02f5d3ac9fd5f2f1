//! Why an operation's arguments do not fit it.

use std::fmt::Display;

/// A breach of an operation's signature, naming operation and parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// No operation of this name in this opset.
    #[error("no operation `{name}` in opset {opset}")]
    UnknownOp {
        /// The name asked for.
        name: String,
        /// The opset it was asked of.
        opset: String,
    },
    /// The operation has no such parameter.
    #[error("{op}: no parameter `{param}`; there are: {known}")]
    UnknownParam {
        /// The operation.
        op: &'static str,
        /// The name given.
        param: String,
        /// The names there are.
        known: String,
    },
    /// A parameter that must be given is not.
    #[error("{op}: parameter `{param}` is missing")]
    Missing {
        /// The operation.
        op: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// A parameter was given something it does not take.
    #[error("{op}: parameter `{param}`: expected {expected}, found {found}")]
    Param {
        /// The operation.
        op: &'static str,
        /// The parameter.
        param: &'static str,
        /// What it takes.
        expected: String,
        /// What it was given.
        found: String,
    },
    /// The parameters fit one by one, but not the result they lead to.
    #[error("{op}: result: expected {expected}, found {found}")]
    Result {
        /// The operation.
        op: &'static str,
        /// What a result must be.
        expected: String,
        /// What it would be.
        found: String,
    },
}

impl OpError {
    pub(crate) fn param(
        op: &'static str,
        param: &'static str,
        expected: impl Display,
        found: impl Display,
    ) -> Self {
        OpError::Param { op, param, expected: expected.to_string(), found: found.to_string() }
    }

    pub(crate) fn result(op: &'static str, expected: impl Display, found: impl Display) -> Self {
        OpError::Result { op, expected: expected.to_string(), found: found.to_string() }
    }
}
