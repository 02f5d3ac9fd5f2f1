//! Operations that relate each element to the others of its row.

use super::eval::{Eval, Results};
use super::param::{FLOAT, FLOAT_SCALAR, Fallback, INT, INTS};
use super::{Call, OpError, OpSpec, Param, row};
use crate::interpret::View;
use crate::{Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "softmax",
        &[Param::new("x", FLOAT), Param::constant("axis", INT).or(Fallback::Int(-1))],
        |call| {
            call.axis("axis", call.shape("x").len())?;
            Ok(vec![call.ty("x").clone()])
        },
        eval_softmax,
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
        eval_layer_norm,
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

fn eval_softmax<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let axis = e.call.axis("axis", e.shape("x").len())?;
    each_row(e, &[axis], |row| e.numerics.softmax(row))
}

fn eval_layer_norm<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let axes = e.call.axes("axes", e.shape("x").len())?;
    let (gamma, beta, epsilon) = (e.opt_floats("gamma"), e.opt_floats("beta"), e.float("epsilon"));
    each_row(e, &axes, |row| {
        e.numerics.normalize(row, epsilon);
        if let Some(gamma) = &gamma {
            row.iter_mut().zip(&**gamma).for_each(|(x, gamma)| *x *= gamma);
        }
        if let Some(beta) = &beta {
            row.iter_mut().zip(&**beta).for_each(|(x, beta)| *x += beta);
        }
    })
}

/// `f` of x, row by row over `axes`, in place.
fn each_row<'v>(e: &Eval<'_, 'v>, axes: &[usize], f: impl Fn(&mut [f32])) -> Results<'v> {
    let row_len = axes.iter().map(|&axis| e.shape("x")[axis]).product();
    let (moved, perm) = Eval::with_last(e.tensor("x"), axes);
    let mut rows = moved.as_floats().into_owned();
    rows.chunks_exact_mut(row_len).for_each(f);
    // Axis i of the rows is axis perm[i] of x; the inverse of that order leads back.
    let mut back = vec![0; perm.len()];
    perm.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
    e.computed(View::permuted(&moved.ty.shape, &back).of(&rows))
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer, ints};
    use crate::{Given, Literal, Payload};

    #[test]
    fn gamma_has_the_shape_of_the_normalised_axes() {
        let norm = |gamma: &[usize]| {
            let gamma = Given::Literal(Literal { ty: f16(gamma), payload: Payload::Blob(64) });
            infer("layer_norm", &[("x", f16(&[2, 3, 4]))], &[("axes", ints(&[1, 2])), ("gamma", gamma)])
        };
        assert_eq!(norm(&[3, 4]), "fp16(2,3,4)");
        assert_eq!(
            norm(&[4]),
            "parameter `gamma`: expected (3,4), the normalised axes of x (2,3,4), found fp16(4)"
        );
    }
}
