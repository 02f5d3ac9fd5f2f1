//! Operations that join tensors, part them and repeat them.

use super::eval::{Eval, Results};
use super::param::{BOOL, Fallback, INT, INTS, TENSOR};
use super::slice::{Range, cut};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;
use crate::interpret::{Tensor, View};

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "concat",
        &[
            Param::new("values", TENSOR).variadic(),
            Param::constant("axis", INT),
            Param::constant("interleave", BOOL).or(Fallback::Bool(false)),
        ],
        infer_concat,
        eval_concat,
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
        eval_split,
        "x -> parts along axis, num_splits equal ones or of split_sizes",
    ),
    row(
        "tile",
        &[Param::new("x", TENSOR), Param::constant("reps", INTS)],
        infer_tile,
        eval_tile,
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

/// More parts than any program has; a foreign one may not make us hold a number of its choice.
const MAX_PARTS: usize = 1 << 16;

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
        Ok(parts) if (1..=MAX_PARTS).contains(&parts) && extent.is_multiple_of(parts) => {
            Ok(vec![extent / parts; parts])
        }
        _ => Err(call.wrong("num_splits", format!("a divisor of {extent}, at most {MAX_PARTS}"), count)),
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

fn eval_concat<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    /// Runs of `values`, each as many elements as it says, in turn until all are used up.
    fn interleave<T: Copy>(values: &[(&[T], usize)]) -> Vec<T> {
        let mut out = Vec::with_capacity(values.iter().map(|(value, _)| value.len()).sum());
        let rounds = values[0].0.len() / values[0].1;
        for round in 0..rounds {
            values.iter().for_each(|&(value, run)| out.extend_from_slice(&value[round * run..][..run]));
        }
        out
    }
    let values = e.tensors("values");
    let axis = e.call.axis("axis", e.result().shape.len())?;
    let run = |value: &Tensor<'_>| value.ty.shape[axis..].iter().product::<usize>();
    if e.holds_floats("values") {
        let floats: Vec<_> = values.iter().map(Tensor::as_floats).collect();
        let runs: Vec<(&[f32], usize)> =
            floats.iter().zip(values).map(|(f, value)| (&**f, run(value))).collect();
        e.moved(Tensor::floats(e.result().clone(), interleave(&runs)))
    } else {
        let ints: Vec<_> = values.iter().map(Tensor::as_ints).collect();
        let runs: Vec<(&[i64], usize)> =
            ints.iter().zip(values).map(|(i, value)| (&**i, run(value))).collect();
        e.moved(Tensor::ints(e.result().clone(), interleave(&runs)))
    }
}

fn eval_split<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let x = e.tensor("x");
    let axis = e.call.axis("axis", x.ty.shape.len())?;
    let mut ranges: Vec<Range> = x.ty.shape.iter().map(|&dim| Range::run(0, dim)).collect();
    let mut parts = Vec::with_capacity(e.results.len());
    for ty in e.results {
        let start = ranges[axis].start + if parts.is_empty() { 0 } else { ranges[axis].len };
        ranges[axis] = Range::run(start, ty.shape[axis]);
        parts.push(cut(e, x, &ranges, &ty.shape));
    }
    Ok(parts)
}

fn eval_tile<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let x = e.tensor("x");
    let strides = x.ty.shape.strides();
    let reps = e.call.ints("reps")?;
    // Each axis is walked twice: as often as it repeats, without moving, and then along itself.
    let (mut dims, mut steps) = (Vec::new(), Vec::new());
    for (axis, &reps) in reps.iter().enumerate() {
        dims.extend([reps as usize, x.ty.shape[axis]]);
        steps.extend([0, strides[axis] as isize]);
    }
    e.moved(x.viewed(&View { start: 0, dims, steps }, &e.result().shape))
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer, ints};

    #[test]
    fn values_are_joined_along_one_axis_and_alike_along_the_others() {
        let concat = |x: &[usize], y: &[usize], axis: i32| {
            infer("concat", &[("values", f16(x)), ("values", f16(y))], &[("axis", axis.into())])
        };
        assert_eq!(concat(&[1, 2, 3], &[1, 5, 3], 1), "fp16(1,7,3)");
        assert_eq!(
            concat(&[1, 2, 3], &[1, 5, 4], 1),
            "parameter `values`: expected fp16(1,2,3), but for axis 1, found fp16(1,5,4)"
        );
        assert_eq!(concat(&[2], &[2], 1), "parameter `axis`: expected an axis of 1, found 1");
        let interleave = [("axis", 0.into()), ("interleave", true.into())];
        let found = infer("concat", &[("values", f16(&[2]))], &interleave);
        assert_eq!(found, "parameter `interleave`: expected false, found true, whose meaning is not settled");
    }

    #[test]
    fn parts_make_up_the_whole() {
        let split = |param: &str, given: crate::Given| {
            infer("split", &[("x", f16(&[6, 2]))], &[(param, given), ("axis", 0.into())])
        };
        assert_eq!(split("num_splits", 3.into()), "fp16(2,2) fp16(2,2) fp16(2,2)");
        assert_eq!(split("split_sizes", ints(&[1, 5])), "fp16(1,2) fp16(5,2)");
        assert_eq!(
            split("num_splits", 4.into()),
            "parameter `num_splits`: expected a divisor of 6, at most 65536, found 4"
        );
        assert_eq!(
            split("split_sizes", ints(&[1, 4])),
            "parameter `split_sizes`: expected a sum of 6, found [1, 4]"
        );
        assert_eq!(
            split("split_sizes", ints(&[7, -1])),
            "parameter `split_sizes`: expected a sum of 6, found [7, -1]"
        );
        let neither = infer("split", &[("x", f16(&[6, 2]))], &[("axis", 0.into())]);
        assert_eq!(neither, "parameter `num_splits` is missing");
    }

    #[test]
    fn repetitions_multiply_extents() {
        let tile = |reps: &[i32]| infer("tile", &[("x", f16(&[2, 3]))], &[("reps", ints(reps))]);
        assert_eq!(tile(&[2, 1]), "fp16(4,3)");
        assert_eq!(tile(&[0, 1]), "parameter `reps`: expected positive numbers, found [0, 1]");
        let huge = tile(&[i32::MAX, i32::MAX]);
        assert!(huge.starts_with("result: expected rank at most 5") || huge.starts_with("fp16("), "{huge}");
    }
}
