//! Operations over whole rows: reductions, softmax, norms, attention.

use lone_mil::{DType, Literal};

use crate::author::case;
use crate::oracle::{self, noise, to_halves};
use crate::{Kind, OpCase, Tensor};

/// Reduction, kind, its result over the last axis of [[3, -4, 0], [1, 2, 2]].
const REDUCTIONS: &[(&str, Kind, [f32; 2])] = &[
    ("reduce_l2_norm", Kind::Rounded, [5.0, 3.0]),
    ("reduce_max", Kind::Exact, [3.0, 2.0]),
    ("reduce_mean", Kind::Summed, [-1.0 / 3.0, 5.0 / 3.0]),
    ("reduce_min", Kind::Exact, [-4.0, 1.0]),
    ("reduce_sum", Kind::Exact, [-1.0, 5.0]),
    ("reduce_sum_square", Kind::Exact, [25.0, 9.0]),
];

pub(super) fn cases() -> Vec<OpCase> {
    let mut cases = Vec::new();
    for &(op, kind, expected) in REDUCTIONS {
        cases.push(case(
            format!("{op} over the last axis"),
            kind,
            vec![Tensor::f16([2, 3], &[3.0, -4.0, 0.0, 1.0, 2.0, 2.0])],
            |a, v| Ok(vec![a.op(op, &[("x", v[0].into()), ("axes", [-1].as_slice().into())])?]),
            vec![Tensor::f16([2], &expected)],
        ));
    }
    cases.extend(reductions());
    cases.extend(softmaxes());
    cases.extend(layer_norms());
    cases.extend(attentions());
    cases
}

fn reductions() -> Vec<OpCase> {
    const N: usize = 1031;
    let long = noise(10, N);
    let sum: f64 = long.iter().map(|&x| f64::from(x)).sum();
    let squares: f64 = long.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let max = long.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let counting: Vec<f32> = (0..12).map(|x| x as f32).collect();
    vec![
        case(
            "reduce_sum over channels keeps the axis",
            Kind::Exact,
            vec![Tensor::f16([1, 3, 2, 2], &counting)],
            |a, v| Ok(vec![a.b.reduce_sum(v[0], &[1], true)?]),
            vec![Tensor::f16([1, 1, 2, 2], &[12.0, 15.0, 18.0, 21.0])],
        ),
        case(
            "reduce_sum over two axes that are apart",
            Kind::Exact,
            vec![Tensor::f16([2, 3, 2], &counting)],
            |a, v| Ok(vec![a.b.reduce_sum(v[0], &[0, 2], false)?]),
            vec![Tensor::f16([3], &[14.0, 22.0, 30.0])],
        ),
        case(
            "reduce_max without axes takes all of them",
            Kind::Exact,
            vec![Tensor::f16([2, 2], &[1.0, -5.0, 4.0, 2.0])],
            |a, v| {
                let max = a.op("reduce_max", &[("x", v[0].into())])?;
                Ok(vec![a.b.reshape(max, &[1])?])
            },
            vec![Tensor::f16([1], &[4.0])],
        ),
        case(
            "reduce_mean of integers truncates",
            Kind::Exact,
            vec![Tensor::i32([2, 2], &[1, 2, -1, -2])],
            |a, v| Ok(vec![a.b.reduce_mean(v[0], &[1], false)?]),
            vec![Tensor::i32([2], &[1, -1])],
        ),
        case(
            format!("reductions over {N} channels"),
            Kind::Summed,
            vec![Tensor::f16([1, N, 1, 1], &long)],
            |a, v| {
                Ok(vec![
                    a.b.reduce_sum(v[0], &[1], true)?,
                    a.b.reduce_mean(v[0], &[1], true)?,
                    a.b.reduce_sum_square(v[0], &[1], true)?,
                    a.b.reduce_max(v[0], &[1], true)?,
                ])
            },
            vec![sum, sum / N as f64, squares, max.into()]
                .into_iter()
                .map(|value| Tensor::f16([1, 1, 1, 1], &[value as f32]))
                .collect(),
        ),
    ]
}

fn softmaxes() -> Vec<OpCase> {
    let ln_3 = 3.0f32.ln();
    let mut cases = vec![
        case(
            "softmax along the last axis",
            Kind::Approximated,
            vec![Tensor::f32([2, 2], &[0.0, ln_3, 100.0, 100.0])],
            |a, v| Ok(vec![a.b.softmax(v[0], -1)?]),
            vec![Tensor::f32([2, 2], &[0.25, 0.75, 0.5, 0.5])],
        ),
        case(
            "softmax along channels",
            Kind::Approximated,
            vec![Tensor::f32([1, 2, 1, 2], &[0.0, 100.0, ln_3, 100.0])],
            |a, v| Ok(vec![a.b.softmax(v[0], 1)?]),
            vec![Tensor::f32([1, 2, 1, 2], &[0.25, 0.5, 0.75, 0.5])],
        ),
        case(
            "softmax of masked scores is zero",
            Kind::Approximated,
            vec![Tensor::f16([1, 4], &[-40_000.0, 1.0, -40_000.0, 1.0])],
            |a, v| Ok(vec![a.b.softmax(v[0], -1)?]),
            vec![Tensor::f16([1, 4], &[0.0, 0.5, 0.0, 0.5])],
        ),
    ];
    for n in [1, 31, 517] {
        let rows = to_halves(noise(11, 3 * n).iter().map(|x| x * 6.0));
        let exact = |row: &[f32]| oracle::softmax(&row.iter().map(|&x| x.into()).collect::<Vec<_>>());
        let expected: Vec<f32> = rows.chunks(n).flat_map(exact).map(|x| x as f32).collect();
        cases.push(case(
            format!("softmax of rows of {n}"),
            Kind::Approximated,
            vec![Tensor::f16([1, 3, 1, n], &rows)],
            |a, v| Ok(vec![a.b.softmax(v[0], -1)?]),
            vec![Tensor::f16([1, 3, 1, n], &expected)],
        ));
    }
    cases
}

fn layer_norms() -> Vec<OpCase> {
    let x = || Tensor::f16([1, 2, 2], &[1.0, 3.0, -2.0, 2.0]);
    vec![
        case(
            "layer_norm centres and scales each row",
            Kind::Approximated,
            vec![x()],
            |a, v| Ok(vec![a.op("layer_norm", &[("x", v[0].into()), ("axes", [2].as_slice().into())])?]),
            vec![Tensor::f16([1, 2, 2], &[-1.0, 1.0, -1.0, 1.0])],
        ),
        case(
            "layer_norm applies gamma, beta and epsilon over channels",
            Kind::Approximated,
            vec![x()],
            |a, v| {
                let (gamma, beta) = (a.weight([2], &[2.0, 1.0])?, a.weight([2], &[0.0, 0.5])?);
                let epsilon = Literal::float(DType::F16, 1.75).expect("fp16 is a float");
                let args = [
                    ("x", v[0].into()),
                    ("axes", [1].as_slice().into()),
                    ("gamma", gamma.into()),
                    ("beta", beta.into()),
                    ("epsilon", epsilon.into()),
                ];
                Ok(vec![a.op("layer_norm", &args)?])
            },
            // The rows are (1,-2) and (3,2), their variances 2.25 and 0.25; with epsilon, 4 and 2.
            vec![Tensor::f16([1, 2, 2], &[1.5, 0.5f32.sqrt(), -0.25, 0.5 - 0.125f32.sqrt()])],
        ),
    ]
}

fn attentions() -> Vec<OpCase> {
    let (heads, l, s, e, v) = (2, 3, 37, 16, 24);
    let (query, key, value) = (noise(12, heads * l * e), noise(13, heads * s * e), noise(14, heads * s * v));
    // Query i sees the first 20 + i keys.
    let mask: Vec<f32> = (0..l * s).map(|at| if at % s < 20 + at / s { 0.0 } else { -40_000.0 }).collect();
    let expected: Vec<f32> = (0..heads)
        .flat_map(|h| {
            let part = |x: &[f32], n: usize| x[h * n..(h + 1) * n].to_vec();
            oracle::attention(
                &part(&query, l * e),
                &part(&key, s * e),
                &part(&value, s * v),
                &mask,
                [l, s, e, v],
            )
        })
        .collect();
    let inputs = || {
        vec![
            Tensor::f16([1, heads, l, e], &query),
            Tensor::f16([1, heads, s, e], &key),
            Tensor::f16([1, heads, s, v], &value),
            Tensor::f16([1, 1, l, s], &mask),
        ]
    };
    let attend = |name: &str, bools: bool| {
        case(
            name,
            Kind::Approximated,
            inputs(),
            |a, v| {
                let mask = if bools {
                    let zero = a.b.scalar_f16(0.0)?;
                    a.op("equal", &[("x", v[3].into()), ("y", zero.into())])?
                } else {
                    v[3]
                };
                let args = [
                    ("query", v[0].into()),
                    ("key", v[1].into()),
                    ("value", v[2].into()),
                    ("attn_mask", mask.into()),
                ];
                Ok(vec![a.op("scaled_dot_product_attention", &args)?])
            },
            vec![Tensor::f16([1, heads, l, v], &expected)],
        )
    };
    vec![
        attend("scaled_dot_product_attention adds a mask of floats", false),
        attend("scaled_dot_product_attention leaves out where a mask of bools is false", true),
    ]
}
