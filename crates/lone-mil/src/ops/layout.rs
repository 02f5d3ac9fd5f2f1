//! Operations that rearrange axes and leave the values alone.

use super::call::MAX_RANK;
use super::eval::{Eval, Results};
use super::param::{INTS, TENSOR};
use super::{Call, OpError, OpSpec, Param, row};
use crate::interpret::View;
use crate::{Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "reshape",
        &[Param::new("x", TENSOR), Param::constant("shape", INTS)],
        infer_reshape,
        reshaped,
        "x (…) -> shape, in row-major order; one -1 takes what is left, a 0 keeps the axis of x in its place",
    ),
    row(
        "transpose",
        &[Param::new("x", TENSOR), Param::constant("perm", INTS)],
        infer_transpose,
        eval_transpose,
        "x (…) -> axis i of the result is axis perm[i] of x",
    ),
    row(
        "expand_dims",
        &[Param::new("x", TENSOR), Param::constant("axes", INTS)],
        infer_expand_dims,
        reshaped,
        "x (…) -> with axes of 1, counted in the result",
    ),
    row(
        "squeeze",
        &[Param::new("x", TENSOR), Param::constant("axes", INTS).optional()],
        infer_squeeze,
        reshaped,
        "x (…) -> without those of axes (of all) that are 1",
    ),
];

fn like_x(call: &Call, shape: impl Into<Shape>) -> Result<Vec<TensorType>, OpError> {
    Ok(vec![TensorType::new(call.dtype("x"), shape)])
}

fn infer_reshape(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (x, wanted) = (call.shape("x"), call.ints("shape")?);
    let wrong = |expected: &str| call.wrong("shape", format!("{expected} for x {x}"), format!("{wanted:?}"));
    let mut shape = Vec::with_capacity(wanted.len());
    for (i, &dim) in wanted.iter().enumerate() {
        shape.push(match dim {
            0 if wanted.len() == x.len() => x[i],
            -1 => 1,
            1.. => usize::try_from(dim).map_err(|_| wrong("smaller dimensions"))?,
            _ => return Err(wrong("dimensions of at least 1, or -1 once, or 0 when the rank stays")),
        });
    }
    let elements = x.elements();
    let known = Shape::new(shape.clone()).checked_elements();
    let known = known.ok_or_else(|| wrong("as many elements"))?;
    let mut rest = wanted.iter().enumerate().filter(|&(_, &dim)| dim == -1).map(|(i, _)| i);
    match (rest.next(), rest.next()) {
        (None, _) if known == elements => like_x(call, shape),
        (Some(i), None) if elements.is_multiple_of(known) => {
            shape[i] = elements / known;
            like_x(call, shape)
        }
        _ => Err(wrong("as many elements")),
    }
}

fn infer_transpose(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.shape("x");
    let perm = call.axes("perm", x.len())?;
    if perm.len() != x.len() {
        return Err(call.wrong("perm", format!("every axis of x {x} once"), format!("{perm:?}")));
    }
    like_x(call, perm.iter().map(|&axis| x[axis]).collect::<Vec<_>>())
}

fn infer_expand_dims(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.shape("x");
    let rank = x.len() + call.ints("axes")?.len();
    if rank > MAX_RANK {
        return Err(call.wrong("axes", format!("at most {MAX_RANK} axes with those of x {x}"), rank));
    }
    let axes = call.axes("axes", rank)?;
    let mut dims = x.iter().copied();
    let dim = |axis| if axes.contains(&axis) { Some(1) } else { dims.next() };
    like_x(call, (0..rank).filter_map(dim).collect::<Vec<_>>())
}

fn infer_squeeze(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.shape("x");
    let axes = call.axes("axes", x.len())?;
    let kept = |&axis: &usize| x[axis] != 1 || !axes.contains(&axis);
    like_x(call, (0..x.len()).filter(kept).map(|axis| x[axis]).collect::<Vec<_>>())
}

fn reshaped<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    e.moved(e.tensor("x").reshaped(&e.result().shape))
}

fn eval_transpose<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let perm = e.call.axes("perm", e.shape("x").len())?;
    e.moved(e.tensor("x").viewed(&View::permuted(e.shape("x"), &perm), &e.result().shape))
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer, ints};

    #[test]
    fn shapes_follow_from_the_numbers_given() {
        let of = |op: &str, x: &[usize], param: &str, values: &[i32]| {
            infer(op, &[("x", f16(x))], &[(param, ints(values))])
        };
        let cases = [
            (of("reshape", &[2, 6], "shape", &[3, -1]), "fp16(3,4)"),
            (of("reshape", &[2, 6], "shape", &[0, -1]), "fp16(2,6)"),
            (of("reshape", &[1], "shape", &[1, 1, 1, 1, 1]), "fp16(1,1,1,1,1)"),
            (
                of("reshape", &[2, 6], "shape", &[-1, -1]),
                "parameter `shape`: expected as many elements for x (2,6), found [-1, -1]",
            ),
            (
                of("reshape", &[2, 6], "shape", &[5, -1]),
                "parameter `shape`: expected as many elements for x (2,6), found [5, -1]",
            ),
            (
                of("reshape", &[2, 6], "shape", &[i32::MAX, i32::MAX, i32::MAX]),
                "parameter `shape`: expected as many elements for x (2,6), found [2147483647, 2147483647, 2147483647]",
            ),
            (
                of("reshape", &[2, 6], "shape", &[0, 2, 6]),
                "parameter `shape`: expected dimensions of at least 1, or -1 once, or 0 when the rank stays for x (2,6), found [0, 2, 6]",
            ),
            (
                of("reshape", &[1], "shape", &[1; 6]),
                "result: expected rank at most 5 and dimensions of at least 1, found fp16(1,1,1,1,1,1)",
            ),
            (of("transpose", &[2, 3, 4], "perm", &[2, 0, -2]), "fp16(4,2,3)"),
            (
                of("transpose", &[2, 3], "perm", &[1, 1]),
                "parameter `perm`: expected distinct axes, found 1 twice",
            ),
            (
                of("transpose", &[2, 3], "perm", &[1]),
                "parameter `perm`: expected every axis of x (2,3) once, found [1]",
            ),
            (of("expand_dims", &[3, 4], "axes", &[0, -1]), "fp16(1,3,4,1)"),
            (of("expand_dims", &[3, 4], "axes", &[4]), "parameter `axes`: expected an axis of 3, found 4"),
            (of("squeeze", &[1, 3, 1], "axes", &[0]), "fp16(3,1)"),
            (of("squeeze", &[1, 3, 1], "axes", &[1]), "fp16(1,3,1)"),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
        assert_eq!(infer("squeeze", &[("x", f16(&[1, 3, 1]))], &[]), "fp16(3)");
    }
}
