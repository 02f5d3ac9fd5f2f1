//! Operations that relate each element to the others of its row.

use super::param::{FLOAT, FLOAT_SCALAR, Fallback, INT, INTS};
use super::{Call, OpError, OpSpec, Param, row};
use crate::{Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "softmax",
        &[Param::new("x", FLOAT), Param::constant("axis", INT).or(Fallback::Int(-1))],
        |call| {
            call.axis("axis", call.shape("x").len())?;
            Ok(vec![call.ty("x").clone()])
        },
        "x (…) -> (…): e^(x - max) / sum of e^(x - max) over axis",
    ),
    row(
        "layer_norm",
        &[
            Param::new("x", FLOAT),
            Param::constant("axes", INTS).optional(),
            Param::constant("gamma", FLOAT).like("x").optional(),
            Param::constant("beta", FLOAT).like("x").optional(),
            Param::constant("epsilon", FLOAT_SCALAR).like("x").or(Fallback::Float(1e-5)),
        ],
        infer_layer_norm,
        "x (…), gamma and beta shaped as the normalised axes -> (…): (x - mean) / sqrt(variance + epsilon) * gamma + beta",
    ),
];

fn infer_layer_norm(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.ty("x");
    let axes = call.axes("axes", x.shape.len())?;
    let normalised = Shape::new(axes.iter().map(|&axis| x.shape[axis]).collect::<Vec<_>>());
    for name in ["gamma", "beta"] {
        if call.has(name) && *call.shape(name) != normalised {
            return Err(call.wrong_type(name, format!("{normalised}, the normalised axes of x {}", x.shape)));
        }
    }
    Ok(vec![x.clone()])
}
