//! Looking rows up by index.

use super::eval::{Eval, Results};
use super::param::{BOOL, Fallback, INDICES, INT, TENSOR};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;
use crate::interpret::Tensor;

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
    eval,
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

fn eval<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let (axis, batch) = gather_axes(e.call)?;
    let (x, indices) = (e.shape("x"), e.ints("indices"));
    let extent = x[axis];
    if let Some(index) = indices.iter().find(|&&index| !(0..extent as i64).contains(&index)) {
        return Err(e.call.wrong("indices", format!("0 to {}", extent - 1), index));
    }
    let places = Places {
        middle: x[batch..axis].iter().product(),
        extent,
        run: x[axis + 1..].iter().product(),
        per_batch: e.shape("indices")[batch..].iter().product(),
    };
    let ty = e.result().clone();
    e.moved(if e.holds_floats("x") {
        Tensor::floats(ty, places.gather(&e.floats("x"), &indices))
    } else {
        Tensor::ints(ty, places.gather(&e.ints("x"), &indices))
    })
}

/// x as (batches, middle, extent, run), indices as (batches, `per_batch`).
struct Places {
    middle: usize,
    extent: usize,
    run: usize,
    per_batch: usize,
}

impl Places {
    fn gather<T: Copy>(&self, x: &[T], indices: &[i64]) -> Vec<T> {
        let mut out = Vec::with_capacity(indices.len() * self.middle * self.run);
        for (batch, indices) in indices.chunks_exact(self.per_batch).enumerate() {
            for middle in 0..self.middle {
                let first = (batch * self.middle + middle) * self.extent;
                for &index in indices {
                    out.extend_from_slice(&x[(first + index as usize) * self.run..][..self.run]);
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer};
    use crate::{DType, TensorType};

    #[test]
    fn indices_take_the_place_of_their_axis() {
        let gather = |x: &[usize], indices: &[usize], axis: i32, batch_dims: i32| {
            let indices = TensorType::new(DType::I32, indices.to_vec());
            let constants = [("axis", axis.into()), ("batch_dims", batch_dims.into())];
            infer("gather", &[("x", f16(x)), ("indices", indices)], &constants)
        };
        let cases = [
            (gather(&[64, 48], &[1], 0, 0), "fp16(1,48)"),
            (gather(&[64, 48], &[], 1, 0), "fp16(64)"),
            (gather(&[4, 5, 6], &[2, 3], -2, 0), "fp16(4,2,3,6)"),
            (gather(&[4, 5, 6], &[4, 3], 1, 1), "fp16(4,3,6)"),
            (
                gather(&[4, 5], &[3, 3], 1, 1),
                "parameter `indices`: expected 1 leading axes in common with x (4,5), found int32(3,3)",
            ),
            (
                gather(&[4, 5], &[4], 0, 1),
                "parameter `batch_dims`: expected at most axis 0 and the rank of indices, found 1",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}
