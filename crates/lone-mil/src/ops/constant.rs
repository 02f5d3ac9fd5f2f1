//! Constants by value, and operations that change nothing but the element type.

use super::eval::{Eval, Results};
use super::param::{LITERAL, STR, TENSOR};
use super::{Binding, Call, OpError, OpSpec, Param, row};
use crate::{DType, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    OpSpec {
        binding: Binding::Attributes,
        ..row(
            "const",
            &[Param::constant("val", LITERAL)],
            |call| Ok(vec![call.ty("val").clone()]),
            |e| e.moved(e.tensor("val").clone()),
            "the literal `val`",
        )
    },
    row(
        "identity",
        &[Param::new("x", TENSOR)],
        |call| Ok(vec![call.ty("x").clone()]),
        |e| e.moved(e.tensor("x").clone()),
        "x (…) -> (…), the same values",
    ),
    row(
        "cast",
        &[Param::new("x", TENSOR), Param::constant("dtype", STR)],
        infer_cast,
        eval_cast,
        "x (…) -> (…) as `dtype`; floats to integers truncate toward zero, to bool compare with zero",
    ),
];

fn infer_cast(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let name = call.str("dtype")?;
    match DType::from_name(name).filter(|dtype| TENSOR.dtypes.contains(dtype)) {
        Some(dtype) => Ok(vec![TensorType::new(dtype, call.shape("x").clone())]),
        None => Err(call.wrong("dtype", "fp16, fp32, int32, int16, uint16, int8, uint8 or bool", name)),
    }
}

fn eval_cast<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let to = e.result().dtype;
    match (e.holds_floats("x"), to.is_float()) {
        (true, true) => e.computed(e.floats("x").into_owned()),
        (false, true) => e.computed(e.ints("x").iter().map(|&x| x as f32).collect()),
        (false, false) => e.computed_ints(e.ints("x").into_owned()),
        (true, false) if to == DType::Bool => {
            e.computed_ints(e.floats("x").iter().map(|&x| i64::from(x != 0.0)).collect())
        }
        // Beyond an integer's range the nearest one stands in, and 0 for NaN, as Rust's casts do.
        (true, false) => {
            let bits = to.bits();
            let signed = !matches!(to, DType::U8 | DType::U16);
            let (low, high) = if signed {
                (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
            } else {
                (0, (1i64 << bits) - 1)
            };
            e.computed_ints(e.floats("x").iter().map(|&x| (x as i64).clamp(low, high)).collect())
        }
    }
}
