//! Reductions over some axes, or over all of them.

use super::eval::{Eval, EvalFn, Results};
use super::param::{BOOL, Fallback, INTS, NUMBER};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;
use crate::interpret::Reduction;

pub(super) static ROWS: &[OpSpec] = &[
    reduction(
        "reduce_l2_norm",
        |e| reduce(e, Reduction::L2Norm, |row| (squares(row) as f64).sqrt() as i64),
        "sqrt(sum of x^2) over axes",
    ),
    reduction(
        "reduce_max",
        |e| reduce(e, Reduction::Max, |row| row.iter().copied().max().unwrap_or(0)),
        "maximum of x over axes",
    ),
    reduction(
        "reduce_mean",
        |e| reduce(e, Reduction::Mean, |row| row.iter().sum::<i64>() / row.len() as i64),
        "mean of x over axes; integers truncate",
    ),
    reduction(
        "reduce_min",
        |e| reduce(e, Reduction::Min, |row| row.iter().copied().min().unwrap_or(0)),
        "minimum of x over axes",
    ),
    reduction("reduce_sum", |e| reduce(e, Reduction::Sum, |row| row.iter().sum()), "sum of x over axes"),
    reduction("reduce_sum_square", |e| reduce(e, Reduction::SumSquare, squares), "sum of x^2 over axes"),
];

const fn reduction(name: &'static str, eval: EvalFn, doc: &'static str) -> OpSpec {
    const PARAMS: &[Param] = &[
        Param::new("x", NUMBER),
        Param::constant("axes", INTS).optional(),
        Param::constant("keep_dims", BOOL).or(Fallback::Bool(false)),
    ];
    row(name, PARAMS, infer, eval, doc)
}

fn infer(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.ty("x");
    let axes = call.axes("axes", x.shape.len())?;
    let keep = call.bool("keep_dims")?;
    let kept = |axis: usize| if axes.contains(&axis) { keep.then_some(1) } else { Some(x.shape[axis]) };
    let shape: Vec<usize> = (0..x.shape.len()).filter_map(kept).collect();
    Ok(vec![TensorType::new(x.dtype, shape)])
}

fn reduce<'v>(e: &Eval<'_, 'v>, f: Reduction, of_ints: fn(&[i64]) -> i64) -> Results<'v> {
    let x = e.tensor("x");
    let axes = e.call.axes("axes", x.ty.shape.len())?;
    let row_len = axes.iter().map(|&axis| x.ty.shape[axis]).product();
    let (x, _) = Eval::with_last(x, &axes);
    if e.holds_floats("x") {
        let x = x.as_floats();
        e.computed(x.chunks_exact(row_len).map(|row| e.numerics.reduce(f, row)).collect())
    } else {
        e.computed_ints(x.as_ints().chunks_exact(row_len).map(of_ints).collect())
    }
}

fn squares(row: &[i64]) -> i64 {
    row.iter().fold(0i64, |sum, x| sum.wrapping_add(x.wrapping_mul(*x)))
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer, ints};

    #[test]
    fn reduced_axes_go_or_stay_as_one() {
        let sum = |axes: &[i32], keep: bool| {
            infer(
                "reduce_sum",
                &[("x", f16(&[2, 3, 4]))],
                &[("axes", ints(axes)), ("keep_dims", keep.into())],
            )
        };
        assert_eq!(sum(&[1], true), "fp16(2,1,4)");
        assert_eq!(sum(&[-1, 0], false), "fp16(3)");
        assert_eq!(sum(&[0, 1, 2], false), "fp16()");
        assert_eq!(sum(&[3], false), "parameter `axes`: expected an axis of 3, found 3");
        assert_eq!(infer("reduce_sum", &[("x", f16(&[2, 3]))], &[]), "fp16()");
    }
}
