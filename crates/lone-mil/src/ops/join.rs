//! Operations that join tensors, part them and repeat them.

use super::param::{BOOL, Fallback, INT, INTS, TENSOR};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "concat",
        &[
            Param::new("values", TENSOR).variadic(),
            Param::constant("axis", INT),
            Param::constant("interleave", BOOL).or(Fallback::Bool(false)),
        ],
        infer_concat,
        "values, alike but for axis -> one after the other along axis",
    ),
    row(
        "split",
        &[
            Param::new("x", TENSOR),
            Param::constant("num_splits", INT).optional(),
            Param::constant("split_sizes", INTS).optional(),
            Param::constant("axis", INT),
        ],
        infer_split,
        "x -> parts along axis, num_splits equal ones or of split_sizes",
    ),
    row(
        "tile",
        &[Param::new("x", TENSOR), Param::constant("reps", INTS)],
        infer_tile,
        "x -> repeated reps[i] times along axis i",
    ),
];

fn infer_concat(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let mut types = call.types("values");
    let first = types.next().expect("a variadic parameter has a value").clone();
    let axis = call.axis("axis", first.shape.len())?;
    if call.bool("interleave")? {
        return Err(call.wrong("interleave", "false", "true, whose meaning is not settled"));
    }
    let mut shape = first.shape.to_vec();
    for ty in types {
        let alike = ty.shape.len() == shape.len()
            && (0..shape.len()).all(|i| i == axis || ty.shape[i] == first.shape[i]);
        if !alike {
            return Err(call.wrong("values", format!("{first}, but for axis {axis}"), ty));
        }
        shape[axis] = shape[axis].saturating_add(ty.shape[axis]);
    }
    Ok(vec![TensorType::new(first.dtype, shape)])
}

/// The extents of the parts of a `split` along its axis.
///
/// # Errors
/// [`OpError`] for sizes that do not make up the axis.
pub fn split_sizes(call: &Call) -> Result<Vec<usize>, OpError> {
    let x = call.shape("x");
    let extent = x[call.axis("axis", x.len())?];
    if call.has("split_sizes") {
        let given = call.ints("split_sizes")?;
        let sizes: Option<Vec<usize>> =
            given.iter().map(|&size| usize::try_from(size).ok().filter(|&s| s > 0)).collect();
        let sum = |sizes: &Vec<usize>| sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        return sizes
            .filter(|sizes| sum(sizes) == Some(extent))
            .ok_or_else(|| call.wrong("split_sizes", format!("a sum of {extent}"), format!("{given:?}")));
    }
    if !call.has("num_splits") {
        return Err(OpError::Missing { op: "split", param: "num_splits" });
    }
    let count = call.int("num_splits")?;
    match usize::try_from(count) {
        Ok(parts) if parts > 0 && extent.is_multiple_of(parts) => Ok(vec![extent / parts; parts]),
        _ => Err(call.wrong("num_splits", format!("a divisor of {extent}"), count)),
    }
}

fn infer_split(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.ty("x");
    let axis = call.axis("axis", x.shape.len())?;
    let part = |size: usize| {
        let mut shape = x.shape.to_vec();
        shape[axis] = size;
        TensorType::new(x.dtype, shape)
    };
    Ok(split_sizes(call)?.into_iter().map(part).collect())
}

fn infer_tile(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.ty("x");
    let reps = call.ints_of_len("reps", x.shape.len())?;
    let dims = x.shape.iter().zip(&reps).map(|(&dim, &reps)| {
        let reps = usize::try_from(reps).ok().filter(|&reps| reps > 0);
        reps.and_then(|reps| dim.checked_mul(reps))
    });
    let shape = dims.collect::<Option<Vec<_>>>();
    let shape = shape.ok_or_else(|| call.wrong("reps", "positive numbers", format!("{reps:?}")))?;
    Ok(vec![TensorType::new(x.dtype, shape)])
}
