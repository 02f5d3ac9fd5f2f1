//! Operations that compute each element of their result from one element of each argument.

use std::cmp::Ordering;

use super::call::broadcast;
use super::eval::{Eval, EvalFn, Results, spread};
use super::param::{FLOAT, FLOAT_SCALAR, Fallback, NUMBER, TENSOR, TRUTH};
use super::{Call, Domain, OpError, OpSpec, Param, row};
use crate::interpret::{Binary, Tensor, Unary, View};
use crate::{DType, Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    unary("abs", X_NUMBER, |e| e.unary(Unary::Abs, i64::abs), "|x|"),
    unary("ceil", X_FLOAT, |e| e.unary_of(Unary::Ceil, &e.floats("x")), "the least integer >= x"),
    unary("cos", X_FLOAT, |e| e.unary_of(Unary::Cos, &e.floats("x")), "cosine of x radians"),
    unary("exp", X_FLOAT, |e| e.unary_of(Unary::Exp, &e.floats("x")), "e^x"),
    unary(
        "exp2",
        X_NUMBER,
        |e| e.unary(Unary::Exp2, |x| if (0..32).contains(&x) { 1 << x } else { 0 }),
        "2^x",
    ),
    unary("floor", X_FLOAT, |e| e.unary_of(Unary::Floor, &e.floats("x")), "the greatest integer <= x"),
    unary(
        "inverse",
        &[Param::new("x", FLOAT), epsilon(1e-4)],
        |e| shifted(e, Unary::Inverse),
        "1 / (x + epsilon)",
    ),
    unary(
        "log",
        &[Param::new("x", FLOAT), epsilon(1e-45)],
        |e| shifted(e, Unary::Log),
        "natural logarithm of x + epsilon",
    ),
    unary("relu", X_FLOAT, |e| e.unary_of(Unary::Relu, &e.floats("x")), "max(x, 0)"),
    unary(
        "round",
        X_FLOAT,
        |e| e.unary_of(Unary::Round, &e.floats("x")),
        "x to the nearest integer, halves to even",
    ),
    unary(
        "rsqrt",
        &[Param::new("x", FLOAT), epsilon(1e-12)],
        |e| shifted(e, Unary::Rsqrt),
        "1 / sqrt(x + epsilon)",
    ),
    unary("sigmoid", X_FLOAT, |e| e.unary_of(Unary::Sigmoid, &e.floats("x")), "1 / (1 + e^-x)"),
    unary("sign", X_NUMBER, |e| e.unary(Unary::Sign, i64::signum), "-1, 0 or 1"),
    unary("silu", X_FLOAT, |e| e.unary_of(Unary::Silu, &e.floats("x")), "x / (1 + e^-x)"),
    unary("sin", X_FLOAT, |e| e.unary_of(Unary::Sin, &e.floats("x")), "sine of x radians"),
    unary("sqrt", X_FLOAT, |e| e.unary_of(Unary::Sqrt, &e.floats("x")), "square root of x"),
    unary("square", X_NUMBER, |e| e.unary(Unary::Square, |x| x * x), "x * x"),
    unary("tanh", X_FLOAT, |e| e.unary_of(Unary::Tanh, &e.floats("x")), "hyperbolic tangent of x"),
    unary(
        "clip",
        &[
            Param::new("x", FLOAT),
            Param::constant("alpha", FLOAT_SCALAR).like("x"),
            Param::constant("beta", FLOAT_SCALAR).like("x"),
        ],
        eval_clip,
        "min(max(x, alpha), beta)",
    ),
    binary("add", |e| e.binary(Binary::Add, |x, y| x + y), "x + y"),
    binary("floor_div", |e| e.binary(Binary::FloorDiv, floor_div), "x / y rounded down"),
    binary("maximum", |e| e.binary(Binary::Maximum, i64::max), "the greater of x and y"),
    binary("minimum", |e| e.binary(Binary::Minimum, i64::min), "the lesser of x and y"),
    binary("mod", |e| e.binary(Binary::Mod, |x, y| x - y * floor_div(x, y)), "x - y * floor(x / y)"),
    binary("mul", |e| e.binary(Binary::Mul, |x, y| x * y), "x * y"),
    binary("pow", |e| e.binary(Binary::Pow, power), "x^y"),
    binary(
        "real_div",
        |e| e.binary(Binary::RealDiv, |x, y| x.checked_div(y).unwrap_or(0)),
        "x / y; integers truncate toward zero",
    ),
    binary("sub", |e| e.binary(Binary::Sub, |x, y| x - y), "x - y"),
    comparison("equal", |e| compare(e, |order| order.is_some_and(Ordering::is_eq)), "x = y"),
    comparison("greater", |e| compare(e, |order| order.is_some_and(Ordering::is_gt)), "x > y"),
    comparison("greater_equal", |e| compare(e, |order| order.is_some_and(Ordering::is_ge)), "x >= y"),
    comparison("less", |e| compare(e, |order| order.is_some_and(Ordering::is_lt)), "x < y"),
    comparison("less_equal", |e| compare(e, |order| order.is_some_and(Ordering::is_le)), "x <= y"),
    comparison("not_equal", |e| compare(e, |order| order.is_none_or(Ordering::is_ne)), "x != y"),
    row(
        "select",
        &[Param::new("cond", TRUTH), Param::new("a", TENSOR), Param::new("b", TENSOR).like("a")],
        infer_select,
        eval_select,
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

const fn unary(name: &'static str, params: &'static [Param], eval: EvalFn, doc: &'static str) -> OpSpec {
    row(name, params, |call| Ok(vec![call.ty("x").clone()]), eval, doc)
}

const fn binary(name: &'static str, eval: EvalFn, doc: &'static str) -> OpSpec {
    row(name, X_Y, |call| Ok(vec![TensorType::new(call.dtype("x"), broadcast_xy(call)?)]), eval, doc)
}

const fn comparison(name: &'static str, eval: EvalFn, doc: &'static str) -> OpSpec {
    row(name, X_Y, |call| Ok(vec![TensorType::new(DType::Bool, broadcast_xy(call)?)]), eval, doc)
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

/// `f(x + epsilon)`.
fn shifted<'v>(e: &Eval<'_, 'v>, f: Unary) -> Results<'v> {
    let epsilon = e.float("epsilon");
    let x: Vec<f32> = e.floats("x").iter().map(|x| x + epsilon).collect();
    e.unary_of(f, &x)
}

fn eval_clip<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let (low, high) = (e.float("alpha"), e.float("beta"));
    e.computed(e.floats("x").iter().map(|x| x.max(low).min(high)).collect())
}

/// `x / y` rounded down; 0 for a division by 0.
fn floor_div(x: i64, y: i64) -> i64 {
    let quotient = x.checked_div(y).unwrap_or(0);
    let inexact = x.checked_rem(y).unwrap_or(0) != 0;
    quotient - i64::from(inexact && (x < 0) != (y < 0))
}

/// `x^y` modulo 2^32; a fraction truncates to 0.
fn power(x: i64, y: i64) -> i64 {
    match u32::try_from(y) {
        Ok(y) => i64::from((x as i32).wrapping_pow(y)),
        Err(_) if x == 1 || (x == -1 && y % 2 == 0) => 1,
        Err(_) if x == -1 => -1,
        Err(_) => 0,
    }
}

/// Whether `holds` for every pair of elements; NaN has no order.
fn compare<'v>(e: &Eval<'_, 'v>, holds: fn(Option<Ordering>) -> bool) -> Results<'v> {
    fn each<T: PartialOrd>(x: &[T], y: &[T], holds: fn(Option<Ordering>) -> bool) -> Vec<i64> {
        x.iter().zip(y).map(|(x, y)| i64::from(holds(x.partial_cmp(y)))).collect()
    }
    let (from_x, from_y, shape) = (e.shape("x"), e.shape("y"), &e.result().shape);
    let truths = if e.holds_floats("x") {
        let (x, y) = (e.floats("x"), e.floats("y"));
        each(&spread(&x, from_x, shape), &spread(&y, from_y, shape), holds)
    } else {
        let (x, y) = (e.ints("x"), e.ints("y"));
        each(&spread(&x, from_x, shape), &spread(&y, from_y, shape), holds)
    };
    e.computed_ints(truths)
}

fn eval_select<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    fn choose<T: Copy>(cond: &[i64], a: &[T], b: &[T]) -> Vec<T> {
        cond.iter().zip(a.iter().zip(b)).map(|(&cond, (&a, &b))| if cond != 0 { a } else { b }).collect()
    }
    let ty = e.result();
    let cond = e.ints("cond");
    let cond = spread(&cond, e.shape("cond"), &ty.shape);
    let [a, b] = ["a", "b"].map(|name| {
        let tensor = e.tensor(name);
        tensor.viewed(&View::broadcast(&tensor.ty.shape, &ty.shape), &ty.shape)
    });
    e.moved(if e.holds_floats("a") {
        Tensor::floats(ty.clone(), choose(&cond, &a.as_floats(), &b.as_floats()))
    } else {
        Tensor::ints(ty.clone(), choose(&cond, &a.as_ints(), &b.as_ints()))
    })
}
