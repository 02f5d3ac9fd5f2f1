//! One row per operation: name, parameters with their domains, type rule, meaning.
//!
//! ```text
//! exp   x: fp16 or fp32 tensor            -> type of x
//! conv  x, weight, bias?, strides = 1s …  -> (N,O,H',W')
//! ```
//! A new operation is one more row in the file of its family, and one more case in the op suite.

mod attention;
mod call;
mod constant;
mod constexpr;
mod conv;
mod elementwise;
mod error;
pub(crate) mod eval;
mod gather;
mod join;
mod layout;
mod matmul;
mod normalize;
mod opset;
mod param;
mod reduce;
#[cfg(test)]
mod rules;
mod slice;
mod state;

use crate::TensorType;
use eval::EvalFn;

pub use call::Call;
pub(crate) use call::is_sized;
pub use conv::Convolution;
pub use error::OpError;
pub use gather::gather_axes;
pub use join::split_sizes;
pub use matmul::MatrixProduct;
pub use opset::Opset;
pub use param::{Domain, Fallback, Param, Presence};
pub use slice::{Range, slice_ranges};

/// One operation of MIL.
#[derive(Debug)]
pub struct OpSpec {
    /// The MIL name, verbatim.
    pub name: &'static str,
    /// The first opset this row holds for, until one of the same name and a later opset.
    pub since: Opset,
    /// Where the file format keeps the arguments.
    pub binding: Binding,
    /// Parameters, in the order of [`crate::Op::args`].
    pub params: &'static [Param],
    /// The types of the results, from the types and constants of the arguments.
    pub infer: fn(&Call) -> Result<Vec<TensorType>, OpError>,
    /// What it computes, with a key of the shapes.
    pub doc: &'static str,
    /// The results from the values of the arguments; `None` for what cannot be run without a device's state.
    pub(crate) eval: Option<EvalFn>,
}

/// Where the file format keeps an operation's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Inputs that name values: all ordinary operations.
    Named,
    /// Inputs that hold literals in place, or name the result of another `constexpr_*`: `constexpr_*` from CoreML8.
    Inline,
    /// Attributes that hold literals: `const`, and `constexpr_*` before CoreML8.
    Attributes,
}

impl OpSpec {
    /// The position of a parameter in [`OpSpec::params`] and [`crate::Op::args`].
    pub fn position(&self, param: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == param)
    }

    /// Whether it has a meaning outside a device: all but the operations on states.
    pub fn can_run(&self) -> bool {
        self.eval.is_some()
    }

    /// Whether its result is known when the program is compiled: `const` and `constexpr_*`.
    pub fn is_constant(&self) -> bool {
        self.binding != Binding::Named
    }
}

/// All rows, family by family.
pub fn all() -> impl Iterator<Item = &'static OpSpec> {
    [
        constant::ROWS,
        constexpr::ROWS,
        elementwise::ROWS,
        conv::ROWS,
        matmul::ROWS,
        reduce::ROWS,
        normalize::ROWS,
        attention::ROWS,
        layout::ROWS,
        join::ROWS,
        slice::ROWS,
        gather::ROWS,
        state::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The row of `name` that holds in `opset`.
///
/// # Errors
/// [`OpError::UnknownOp`] if there is none.
pub fn find(name: &str, opset: Opset) -> Result<&'static OpSpec, OpError> {
    all()
        .filter(|row| row.name == name && row.since <= opset)
        .max_by_key(|row| row.since)
        .ok_or_else(|| OpError::UnknownOp { name: name.into(), opset: opset.name().into() })
}

/// The row of an ordinary operation, to be completed by its family.
const fn row(
    name: &'static str,
    params: &'static [Param],
    infer: fn(&Call) -> Result<Vec<TensorType>, OpError>,
    eval: EvalFn,
    doc: &'static str,
) -> OpSpec {
    OpSpec { name, since: Opset::CoreML5, binding: Binding::Named, params, infer, doc, eval: Some(eval) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opset_decides_between_rows_of_one_name() {
        let palette = |opset| find("constexpr_lut_to_dense", opset).map(|row| row.binding);
        assert_eq!(palette(Opset::CoreML8), Ok(Binding::Inline));
        assert_eq!(palette(Opset::CoreML7), Ok(Binding::Attributes));
        assert!(matches!(palette(Opset::CoreML5), Err(OpError::UnknownOp { .. })));
    }

    #[test]
    fn rows_are_documented_and_unique_and_refer_to_parameters_they_have() {
        let mut seen = std::collections::HashSet::new();
        for row in all() {
            assert!(seen.insert((row.name, row.since)), "{} twice", row.name);
            assert!(!row.doc.is_empty(), "{}", row.name);
            for (i, param) in row.params.iter().enumerate() {
                let like = param.like.map(|other| row.position(other));
                assert!(like.is_none_or(|other| other.is_some_and(|other| other < i)), "{}", row.name);
            }
        }
    }
}
