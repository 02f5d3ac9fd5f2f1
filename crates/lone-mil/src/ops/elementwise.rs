//! Operations that compute each element of their result from one element of each argument.

use super::call::broadcast;
use super::param::{FLOAT, FLOAT_SCALAR, Fallback, NUMBER, TENSOR, TRUTH};
use super::{Call, Domain, OpError, OpSpec, Param, row};
use crate::{DType, Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    unary("abs", X_NUMBER, "|x|"),
    unary("ceil", X_FLOAT, "the least integer >= x"),
    unary("cos", X_FLOAT, "cosine of x radians"),
    unary("exp", X_FLOAT, "e^x"),
    unary("exp2", X_NUMBER, "2^x"),
    unary("floor", X_FLOAT, "the greatest integer <= x"),
    unary("inverse", &[Param::new("x", FLOAT), epsilon(1e-4)], "1 / (x + epsilon)"),
    unary("log", &[Param::new("x", FLOAT), epsilon(1e-45)], "natural logarithm of x + epsilon"),
    unary("relu", X_FLOAT, "max(x, 0)"),
    unary("round", X_FLOAT, "x to the nearest integer, halves to even"),
    unary("rsqrt", &[Param::new("x", FLOAT), epsilon(1e-12)], "1 / sqrt(x + epsilon)"),
    unary("sigmoid", X_FLOAT, "1 / (1 + e^-x)"),
    unary("sign", X_NUMBER, "-1, 0 or 1"),
    unary("silu", X_FLOAT, "x / (1 + e^-x)"),
    unary("sin", X_FLOAT, "sine of x radians"),
    unary("sqrt", X_FLOAT, "square root of x"),
    unary("square", X_NUMBER, "x * x"),
    unary("tanh", X_FLOAT, "hyperbolic tangent of x"),
    unary(
        "clip",
        &[
            Param::new("x", FLOAT),
            Param::constant("alpha", FLOAT_SCALAR).like("x"),
            Param::constant("beta", FLOAT_SCALAR).like("x"),
        ],
        "min(max(x, alpha), beta)",
    ),
    binary("add", "x + y"),
    binary("floor_div", "x / y rounded down"),
    binary("maximum", "the greater of x and y"),
    binary("minimum", "the lesser of x and y"),
    binary("mod", "x - y * floor(x / y)"),
    binary("mul", "x * y"),
    binary("pow", "x^y"),
    binary("real_div", "x / y; integers truncate toward zero"),
    binary("sub", "x - y"),
    comparison("equal", "x = y"),
    comparison("greater", "x > y"),
    comparison("greater_equal", "x >= y"),
    comparison("less", "x < y"),
    comparison("less_equal", "x <= y"),
    comparison("not_equal", "x != y"),
    row(
        "select",
        &[Param::new("cond", TRUTH), Param::new("a", TENSOR), Param::new("b", TENSOR).like("a")],
        infer_select,
        "a where cond holds, else b; the three broadcast",
    ),
];

const X_FLOAT: &[Param] = &[Param::new("x", FLOAT)];
const X_NUMBER: &[Param] = &[Param::new("x", NUMBER)];
const X_Y: &[Param] = &[Param::new("x", NUMBER), Param::new("y", NUMBER).like("x")];

const fn epsilon(value: f32) -> Param {
    const EPSILON: Domain = FLOAT_SCALAR;
    Param::constant("epsilon", EPSILON).like("x").or(Fallback::Float(value))
}

const fn unary(name: &'static str, params: &'static [Param], doc: &'static str) -> OpSpec {
    row(name, params, |call| Ok(vec![call.ty("x").clone()]), doc)
}

const fn binary(name: &'static str, doc: &'static str) -> OpSpec {
    row(name, X_Y, |call| Ok(vec![TensorType::new(call.dtype("x"), broadcast_xy(call)?)]), doc)
}

const fn comparison(name: &'static str, doc: &'static str) -> OpSpec {
    row(name, X_Y, |call| Ok(vec![TensorType::new(DType::Bool, broadcast_xy(call)?)]), doc)
}

fn broadcast_xy(call: &Call) -> Result<Shape, OpError> {
    let x = call.shape("x");
    let shape = broadcast(x, call.shape("y"));
    shape.map(Shape::new).ok_or_else(|| call.wrong_type("y", format!("a shape that broadcasts with x {x}")))
}

fn infer_select(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let a = call.shape("a");
    let chosen = broadcast(a, call.shape("b"))
        .ok_or_else(|| call.wrong_type("b", format!("a shape that broadcasts with a {a}")))?;
    let shape = broadcast(&chosen, call.shape("cond")).ok_or_else(|| {
        call.wrong_type("cond", format!("a shape that broadcasts with {}", Shape::from(chosen)))
    })?;
    Ok(vec![TensorType::new(call.dtype("a"), shape)])
}
