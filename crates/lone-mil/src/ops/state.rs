//! States: type rules only, since no backend here keeps state inside a program.

use super::param::{FLOAT, STATE};
use super::{Call, OpError, OpSpec, Opset, Param, row};
use crate::TensorType;

pub(super) static ROWS: &[OpSpec] = &[
    OpSpec {
        since: Opset::CoreML8,
        eval: None,
        ..row(
            "read_state",
            &[Param::new("input", STATE)],
            |call| Ok(vec![call.ty("input").clone()]),
            |_| Ok(Vec::new()),
            "input, a state of type T -> T, what it holds now",
        )
    },
    OpSpec {
        since: Opset::CoreML8,
        eval: None,
        ..row(
            "write_state",
            &[Param::new("input", STATE), Param::new("data", FLOAT)],
            infer_write,
            |_| Ok(Vec::new()),
            "input, a state of type T, data T -> nothing; the state now holds data",
        )
    },
];

fn infer_write(call: &Call) -> Result<Vec<TensorType>, OpError> {
    if call.ty("data") != call.ty("input") {
        return Err(call.wrong_type("data", format!("{}, the type of the state", call.ty("input"))));
    }
    Ok(Vec::new())
}
