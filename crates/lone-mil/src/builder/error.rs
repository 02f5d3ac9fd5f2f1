//! Why a function could not be built.

use crate::TensorType;
use crate::ops::OpError;

/// A step that would have made a wrong function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An operation's arguments do not fit it.
    #[error("function `{function}`, operation {op}: {source}")]
    Op {
        /// The function in the making.
        function: String,
        /// The position the operation would have had.
        op: usize,
        /// What does not fit.
        source: OpError,
    },
    /// A name that cannot be given.
    #[error("function `{function}`: the name `{name}` cannot be given: {why}")]
    Name {
        /// The function in the making.
        function: String,
        /// The name asked for.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// An input or weight of an impossible type, or a blob that does not hold it.
    #[error("function `{function}`, `{name}`: expected {expected}, found {found}")]
    Type {
        /// The function in the making.
        function: String,
        /// The input or weight.
        name: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// fp16 values that Apple's compiler accepts only in a blob.
    #[error(
        "function `{function}`: a constant {ty} must be a blob; only fp16 scalars can stand in the program"
    )]
    InlineHalves {
        /// The function in the making.
        function: String,
        /// The constant's type.
        ty: TensorType,
    },
    /// A value that is not this function's.
    #[error("function `{function}` has no value number {id}")]
    NoValue {
        /// The function in the making.
        function: String,
        /// The value's number.
        id: u32,
    },
    /// A value that cannot be an output.
    #[error("function `{function}`: `{value}` cannot be an output: {why}")]
    Output {
        /// The function in the making.
        function: String,
        /// The value.
        value: String,
        /// What stands against it.
        why: &'static str,
    },
    /// A function must have outputs.
    #[error("function `{function}` has no outputs")]
    NoOutput {
        /// The function in the making.
        function: String,
    },
}
