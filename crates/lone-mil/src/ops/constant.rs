//! Constants by value, and operations that change nothing but the element type.

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
            "the literal `val`",
        )
    },
    row(
        "identity",
        &[Param::new("x", TENSOR)],
        |call| Ok(vec![call.ty("x").clone()]),
        "x (…) -> (…), the same values",
    ),
    row(
        "cast",
        &[Param::new("x", TENSOR), Param::constant("dtype", STR)],
        infer_cast,
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
