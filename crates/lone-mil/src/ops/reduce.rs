//! Reductions over some axes, or over all of them.

use super::param::{BOOL, Fallback, INTS, NUMBER};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;

pub(super) static ROWS: &[OpSpec] = &[
    reduction("reduce_l2_norm", "sqrt(sum of x^2) over axes"),
    reduction("reduce_max", "maximum of x over axes"),
    reduction("reduce_mean", "mean of x over axes; integers truncate"),
    reduction("reduce_min", "minimum of x over axes"),
    reduction("reduce_sum", "sum of x over axes"),
    reduction("reduce_sum_square", "sum of x^2 over axes"),
];

const fn reduction(name: &'static str, doc: &'static str) -> OpSpec {
    const PARAMS: &[Param] = &[
        Param::new("x", NUMBER),
        Param::constant("axes", INTS).optional(),
        Param::constant("keep_dims", BOOL).or(Fallback::Bool(false)),
    ];
    row(name, PARAMS, infer, doc)
}

fn infer(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.ty("x");
    let axes = call.axes("axes", x.shape.len())?;
    let keep = call.bool("keep_dims")?;
    let kept = |axis: usize| if axes.contains(&axis) { keep.then_some(1) } else { Some(x.shape[axis]) };
    let shape: Vec<usize> = (0..x.shape.len()).filter_map(kept).collect();
    Ok(vec![TensorType::new(x.dtype, shape)])
}
