//! Looking rows up by index.

use super::param::{BOOL, Fallback, INDICES, INT, TENSOR};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;

pub(super) static ROWS: &[OpSpec] = &[row(
    "gather",
    &[
        Param::new("x", TENSOR),
        Param::new("indices", INDICES),
        Param::constant("axis", INT).or(Fallback::Int(0)),
        Param::constant("batch_dims", INT).or(Fallback::Int(0)),
        Param::constant("validate_indices", BOOL).or(Fallback::Bool(false)),
    ],
    infer,
    "x (B,…,D,…), indices (B,I…) -> (B,…,I…,…): x at indices along axis, batch_dims leading axes B in common",
)];

/// The axis and the number of batch axes of a `gather`.
///
/// # Errors
/// [`OpError`] for axes that `x` and `indices` do not have.
pub fn gather_axes(call: &Call) -> Result<(usize, usize), OpError> {
    let (x, indices) = (call.shape("x"), call.shape("indices"));
    let axis = call.axis("axis", x.len())?;
    let batch_dims = call.int("batch_dims")?;
    let batch = usize::try_from(batch_dims)
        .ok()
        .filter(|&batch| batch <= axis && batch <= indices.len())
        .ok_or_else(|| {
            call.wrong("batch_dims", format!("at most axis {axis} and the rank of indices"), batch_dims)
        })?;
    if x[..batch] != indices[..batch] {
        return Err(call.wrong_type("indices", format!("{batch} leading axes in common with x {x}")));
    }
    Ok((axis, batch))
}

fn infer(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (axis, batch) = gather_axes(call)?;
    let (x, indices) = (call.ty("x"), call.shape("indices"));
    let mut shape = x.shape[..axis].to_vec();
    shape.extend(&indices[batch..]);
    shape.extend(&x.shape[axis + 1..]);
    Ok(vec![TensorType::new(x.dtype, shape)])
}
