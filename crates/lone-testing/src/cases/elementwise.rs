//! Operations on one element at a time.

use std::f32::consts::{E, FRAC_1_SQRT_2, FRAC_PI_2, LN_2, SQRT_2};

use lone_mil::{DType, Literal, ValueId};

use crate::author::case;
use crate::oracle::{noise, to_halves};
use crate::{Author, Kind, OpCase, Tensor};

const INFINITY: f32 = f32::INFINITY;

/// Operation, kind, x, f(x).
const UNARY: &[(&str, Kind, &[f32], &[f32])] = &[
    ("abs", Kind::Exact, &[-1.5, 0.0, 2.0, -65504.0], &[1.5, 0.0, 2.0, 65504.0]),
    ("ceil", Kind::Exact, &[-1.5, -0.25, 0.25, 2.0], &[-1.0, 0.0, 1.0, 2.0]),
    ("cos", Kind::Approximated, &[0.0, 0.5, 1.0], &[1.0, 0.877_582_56, 0.540_302_3]),
    ("exp", Kind::Approximated, &[0.0, 1.0, -1.0, 11.5, -20.0], &[1.0, E, 1.0 / E, INFINITY, 2e-9]),
    ("exp2", Kind::Approximated, &[0.0, 3.0, -2.0, 0.5], &[1.0, 8.0, 0.25, SQRT_2]),
    ("floor", Kind::Exact, &[-1.5, -0.25, 0.25, 2.0], &[-2.0, -1.0, 0.0, 2.0]),
    ("relu", Kind::Exact, &[-1.5, 0.0, 2.5, -0.0], &[0.0, 0.0, 2.5, 0.0]),
    ("round", Kind::Exact, &[-2.5, -0.75, 0.5, 1.5, 2.25], &[-2.0, -1.0, 0.0, 2.0, 2.0]),
    ("sigmoid", Kind::Tabled, &[0.0, 1.0, -1.0, 20.0, -60.0], &[0.5, 0.731_058_6, 0.268_941_43, 1.0, 0.0]),
    ("sign", Kind::Exact, &[-3.0, 0.0, 0.5], &[-1.0, 0.0, 1.0]),
    ("silu", Kind::Tabled, &[0.0, 1.0, -1.0, 60.0, -60.0], &[0.0, 0.731_058_6, -0.268_941_4, 60.0, 0.0]),
    ("sin", Kind::Approximated, &[0.0, 0.5, 1.0], &[0.0, 0.479_425_54, 0.841_471]),
    ("sqrt", Kind::Rounded, &[0.0, 2.25, 2.0], &[0.0, 1.5, SQRT_2]),
    ("square", Kind::Rounded, &[0.0, -1.5, 255.0, 256.0], &[0.0, 2.25, 65025.0, INFINITY]),
    ("tanh", Kind::Tabled, &[0.0, 1.0, -1.0, 30.0], &[0.0, 0.761_594_2, -0.761_594_2, 1.0]),
];

/// Operation, kind, and x, y, f(x, y).
const BINARY: &[(&str, Kind, [&[f32]; 3])] = &[
    ("add", Kind::Rounded, [&[1.0, 2048.0, 60000.0], &[0.5, 1.0, 60000.0], &[1.5, 2048.0, INFINITY]]),
    ("floor_div", Kind::Exact, [&[7.0, -7.0, 7.5], &[2.0, 2.0, -2.0], &[3.0, -4.0, -4.0]]),
    ("maximum", Kind::Exact, [&[1.0, -1.0, 3.0], &[2.0, -2.0, 3.0], &[2.0, -1.0, 3.0]]),
    ("minimum", Kind::Exact, [&[1.0, -1.0, 3.0], &[2.0, -2.0, 3.0], &[1.0, -2.0, 3.0]]),
    ("mod", Kind::Exact, [&[7.0, -7.0, 7.0], &[3.0, 3.0, -3.0], &[1.0, 2.0, -2.0]]),
    ("mul", Kind::Rounded, [&[1.5, -3.0, 300.0], &[2.0, 0.25, 300.0], &[3.0, -0.75, INFINITY]]),
    ("pow", Kind::Approximated, [&[2.0, 9.0, 4.0], &[10.0, 0.5, -1.0], &[1024.0, 3.0, 0.25]]),
    ("real_div", Kind::Rounded, [&[1.0, -3.0, 1.0], &[3.0, 2.0, 0.0], &[1.0 / 3.0, -1.5, INFINITY]]),
    (
        "sub",
        Kind::Rounded,
        [&[1.0, 2049.0, -60000.0], &[0.5, 1.0, 60000.0], &[0.5, 2047.0, f32::NEG_INFINITY]],
    ),
];

/// Operation, f(x, y) for x = 7, -7, 3 and y = 2, 2, 3.
const INTEGER: &[(&str, [i32; 3])] = &[
    ("add", [9, -5, 6]),
    ("floor_div", [3, -4, 1]),
    ("maximum", [7, 2, 3]),
    ("minimum", [2, -7, 3]),
    ("mod", [1, 1, 0]),
    ("mul", [14, -14, 9]),
    ("pow", [49, 49, 27]),
    ("real_div", [3, -3, 1]),
    ("sub", [5, -9, 0]),
];

/// Comparison, and whether it holds for 1 and 2, for 2 and 2, for 3 and 2.
const COMPARISONS: &[(&str, [f32; 3])] = &[
    ("equal", [0.0, 1.0, 0.0]),
    ("greater", [0.0, 0.0, 1.0]),
    ("greater_equal", [0.0, 1.0, 1.0]),
    ("less", [1.0, 0.0, 0.0]),
    ("less_equal", [1.0, 1.0, 0.0]),
    ("not_equal", [1.0, 0.0, 1.0]),
];

pub(super) fn cases() -> Vec<OpCase> {
    let mut cases = Vec::new();
    for &(op, kind, x, y) in UNARY {
        cases.push(unary(op, kind, Tensor::f16([x.len()], x), Tensor::f16([x.len()], y)));
    }
    for &(op, kind, values) in BINARY {
        let [x, y, z] = values.map(|values| Tensor::f16([values.len()], values));
        cases.push(binary(op.to_owned(), op, kind, [x, y], z));
    }
    for &(op, expected) in INTEGER {
        let [x, y, z] = [[7, -7, 3], [2, 2, 3], expected].map(|values| Tensor::i32([3], &values));
        cases.push(binary(format!("{op} of integers"), op, Kind::Exact, [x, y], z));
    }
    for &(op, expected) in COMPARISONS {
        let [x, y, z] = [[1.0, 2.0, 3.0], [2.0; 3], expected].map(|values| Tensor::f16([3], &values));
        cases.push(case(
            format!("{op} holds where it should"),
            Kind::Exact,
            vec![x, y],
            |a, v| {
                let truth = a.op(op, &[("x", v[0].into()), ("y", v[1].into())])?;
                Ok(vec![a.b.cast(truth, DType::F16)?])
            },
            vec![z],
        ));
    }
    cases.extend(broadcasts());
    cases.extend(with_constants());
    cases.extend(long_ones());
    cases.extend(casts());
    cases
}

fn unary(op: &str, kind: Kind, x: Tensor, y: Tensor) -> OpCase {
    let build = |a: &mut Author, v: &[ValueId]| Ok(vec![a.op(op, &[("x", v[0].into())])?]);
    case(op, kind, vec![x], build, vec![y])
}

fn binary(name: String, op: &str, kind: Kind, [x, y]: [Tensor; 2], z: Tensor) -> OpCase {
    let build =
        |a: &mut Author, v: &[ValueId]| Ok(vec![a.op(op, &[("x", v[0].into()), ("y", v[1].into())])?]);
    case(name, kind, vec![x, y], build, vec![z])
}

fn broadcasts() -> Vec<OpCase> {
    /// Name, the shapes of x, y and their sum, and that sum.
    type Sum = (&'static str, [&'static [usize]; 3], &'static [f32]);
    const SUMS: &[Sum] = &[
        ("a row over a matrix", [&[2, 3], &[3], &[2, 3]], &[10.0, 21.0, 32.0, 13.0, 24.0, 35.0]),
        ("a column over a matrix", [&[2, 3], &[2, 1], &[2, 3]], &[10.0, 11.0, 12.0, 23.0, 24.0, 25.0]),
        (
            "a column and a row over each other",
            [&[2, 1], &[1, 3], &[2, 3]],
            &[10.0, 20.0, 30.0, 11.0, 21.0, 31.0],
        ),
        (
            "a channel over positions",
            [&[1, 2, 1, 3], &[1, 2, 1, 1], &[1, 2, 1, 3]],
            &[10.0, 11.0, 12.0, 23.0, 24.0, 25.0],
        ),
    ];
    let tens = [10.0, 20.0, 30.0];
    let units = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    SUMS.iter()
        .map(|&(name, [x, y, z], expected)| {
            let tensor = |shape: &[usize], values: &[f32]| {
                Tensor::f16(shape.to_vec(), &values[..shape.iter().product::<usize>()])
            };
            let (x, y, z) = (tensor(x, &units), tensor(y, &tens), tensor(z, expected));
            binary(format!("add broadcasts {name}"), "add", Kind::Exact, [x, y], z)
        })
        .collect()
}

/// Operations with scalar parameters besides x.
fn with_constants() -> Vec<OpCase> {
    let half = |value| Literal::float(DType::F16, value).expect("fp16 is a float");
    let x = || Tensor::f16([3], &[1.0, 4.0, 16.0]);
    let with = |op: &'static str, epsilon: Option<f32>, expected: [f32; 3]| {
        let name = match epsilon {
            Some(epsilon) => format!("{op} adds its epsilon of {epsilon}"),
            None => op.to_owned(),
        };
        let build = |a: &mut Author, v: &[ValueId]| {
            let mut args = vec![("x", v[0].into())];
            args.extend(epsilon.map(|epsilon| ("epsilon", half(epsilon).into())));
            Ok(vec![a.op(op, &args)?])
        };
        case(name, Kind::Approximated, vec![x()], build, vec![Tensor::f16([3], &expected)])
    };
    vec![
        with("rsqrt", None, [1.0, 0.5, 0.25]),
        with("rsqrt", Some(1.0), [FRAC_1_SQRT_2, 1.0 / 5.0f32.sqrt(), 1.0 / 17.0f32.sqrt()]),
        with("inverse", Some(0.0), [1.0, 0.25, 1.0 / 16.0]),
        with("inverse", None, [0.9999, 0.249_994, 0.062_499_6]),
        with("log", None, [0.0, 2.0 * LN_2, 4.0 * LN_2]),
        with("log", Some(4.0), [5.0f32.ln(), 3.0 * LN_2, 20.0f32.ln()]),
        case(
            "clip bounds both sides",
            Kind::Exact,
            vec![Tensor::f16([4], &[-2.0, -0.5, 0.5, 2.0])],
            |a, v| {
                let bounds = [("alpha", half(-0.5).into()), ("beta", half(1.0).into())];
                Ok(vec![a.op("clip", &[("x", v[0].into()), bounds[0].clone(), bounds[1].clone()])?])
            },
            vec![Tensor::f16([4], &[-0.5, -0.5, 0.5, 1.0])],
        ),
        case(
            "a scalar constant broadcasts on either side",
            Kind::Exact,
            vec![Tensor::f16([2, 2], &[1.0, 2.0, 3.0, 4.0])],
            |a, v| {
                let ten = a.b.scalar_f16(10.0)?;
                Ok(vec![a.b.sub(v[0], ten)?, a.b.sub(ten, v[0])?])
            },
            vec![Tensor::f16([2, 2], &[-9.0, -8.0, -7.0, -6.0]), Tensor::f16([2, 2], &[9.0, 8.0, 7.0, 6.0])],
        ),
        case(
            "select chooses element by element and broadcasts",
            Kind::Exact,
            vec![Tensor::f16([2, 2], &[1.0, 2.0, 3.0, 4.0]), Tensor::f16([2, 1], &[0.0, 9.0])],
            |a, v| {
                let less = a.op("less", &[("x", v[0].into()), ("y", v[1].into())])?;
                Ok(vec![a.op("select", &[("cond", less.into()), ("a", v[0].into()), ("b", v[1].into())])?])
            },
            vec![Tensor::f16([2, 2], &[0.0, 0.0, 3.0, 4.0])],
        ),
    ]
}

/// More elements than a vector register holds, and not a multiple of any.
fn long_ones() -> Vec<OpCase> {
    const N: usize = 1037;
    type Exact = fn(f64) -> f64;
    let functions: [(&str, Kind, Exact); 6] = [
        ("exp", Kind::Approximated, f64::exp),
        ("tanh", Kind::Tabled, f64::tanh),
        ("sigmoid", Kind::Tabled, |x| 1.0 / (1.0 + (-x).exp())),
        ("silu", Kind::Tabled, |x| x / (1.0 + (-x).exp())),
        ("abs", Kind::Exact, f64::abs),
        ("square", Kind::Rounded, |x| x * x),
    ];
    // From -8 to 8 in steps that are exact.
    let x: Vec<f32> = noise(1, N).iter().map(|x| x * 8.0).collect();
    let mut cases: Vec<OpCase> = functions
        .into_iter()
        .map(|(op, kind, f)| {
            let y: Vec<f32> = x.iter().map(|&x| f(x.into()) as f32).collect();
            let build = |a: &mut Author, v: &[ValueId]| Ok(vec![a.op(op, &[("x", v[0].into())])?]);
            let shape = [1, N, 1, 1];
            case(
                format!("{op} of {N}"),
                kind,
                vec![Tensor::f16(shape, &x)],
                build,
                vec![Tensor::f16(shape, &y)],
            )
        })
        .collect();
    let y = to_halves(noise(2, N).iter().map(|y| y + 2.0));
    type Pair = fn(f32, f32) -> f32;
    let pairs: [(&str, Pair); 4] =
        [("add", |x, y| x + y), ("mul", |x, y| x * y), ("sub", |x, y| x - y), ("real_div", |x, y| x / y)];
    for (op, f) in pairs {
        let z: Vec<f32> = x.iter().zip(&y).map(|(&x, &y)| f(x, y)).collect();
        let [x, y, z] = [&x, &y, &z].map(|values| Tensor::f16([N], values));
        cases.push(binary(format!("{op} of {N}"), op, Kind::Rounded, [x, y], z));
    }
    cases
}

fn casts() -> Vec<OpCase> {
    vec![
        case(
            "cast of floats to integers truncates toward zero",
            Kind::Exact,
            vec![Tensor::f16([4], &[1.75, -1.75, 0.5, 3.0])],
            |a, v| Ok(vec![a.b.cast(v[0], DType::I32)?]),
            vec![Tensor::i32([4], &[1, -1, 0, 3])],
        ),
        case(
            "cast of fp32 to fp16 rounds to the nearest and to even",
            Kind::Exact,
            vec![Tensor::f32([4], &[2049.0, 2051.0, FRAC_PI_2, 1e6])],
            |a, v| Ok(vec![a.b.cast(v[0], DType::F16)?]),
            vec![Tensor::f16([4], &[2048.0, 2052.0, 1.570_312_5, INFINITY])],
        ),
        case(
            "cast of fp16 to fp32 is exact",
            Kind::Exact,
            vec![Tensor::f16([2], &[0.1, 65504.0])],
            |a, v| Ok(vec![a.b.cast(v[0], DType::F32)?]),
            vec![Tensor::f32([2], &[0.099_975_586, 65504.0])],
        ),
        case(
            "identity gives its input back",
            Kind::Exact,
            vec![Tensor::f16([2], &[0.5, -1.0])],
            |a, v| Ok(vec![a.b.identity(v[0])?]),
            vec![Tensor::f16([2], &[0.5, -1.0])],
        ),
    ]
}
