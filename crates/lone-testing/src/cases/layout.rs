//! Operations that move elements: axes rearranged, tensors joined, parted and repeated, rows looked up.

use lone_mil::DType;

use crate::author::{Built, case};
use crate::{Author, Kind, OpCase, Tensor};

fn counting(n: usize) -> Vec<f32> {
    (0..n).map(|x| x as f32).collect()
}

/// A case with one fp16 input that counts 0, 1, 2, …
fn moved(
    name: &str,
    from: &[usize],
    build: impl FnOnce(&mut Author, lone_mil::ValueId) -> Built,
    to: &[(&[usize], &[f32])],
) -> OpCase {
    let x = Tensor::f16(from.to_vec(), &counting(from.iter().product()));
    let expected = to.iter().map(|&(shape, values)| Tensor::f16(shape.to_vec(), values)).collect();
    case(name, Kind::Exact, vec![x], |a, v| build(a, v[0]), expected)
}

pub(super) fn cases() -> Vec<OpCase> {
    [axes(), joins(), lookups()].concat()
}

fn axes() -> Vec<OpCase> {
    let six = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let (same, wide): (&[f32], &[f32]) = (&six, &counting(12));
    vec![
        moved(
            "reshape keeps the order",
            &[2, 3],
            |a, x| Ok(vec![a.b.reshape(x, &[3, 2])?]),
            &[(&[3, 2], same)],
        ),
        moved(
            "reshape fills in -1 and copies 0",
            &[2, 3],
            |a, x| Ok(vec![a.b.reshape(x, &[-1])?, a.b.reshape(x, &[0, -1])?]),
            &[(&[6], same), (&[2, 3], same)],
        ),
        moved(
            "transpose of a matrix",
            &[2, 3],
            |a, x| Ok(vec![a.b.transpose(x, &[1, 0])?]),
            &[(&[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0])],
        ),
        moved(
            "transpose of four axes",
            &[1, 2, 3, 2],
            |a, x| Ok(vec![a.b.transpose(x, &[0, 3, 1, 2])?, a.b.transpose(x, &[0, 2, 1, -1])?]),
            &[
                (&[1, 2, 2, 3], &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0]),
                (&[1, 3, 2, 2], &[0.0, 1.0, 6.0, 7.0, 2.0, 3.0, 8.0, 9.0, 4.0, 5.0, 10.0, 11.0]),
            ],
        ),
        moved(
            "expand_dims counts its axes in the result",
            &[3, 4],
            |a, x| Ok(vec![a.b.expand_dims(x, &[0, -1])?]),
            &[(&[1, 3, 4, 1], wide)],
        ),
        moved(
            "squeeze drops the axes it is given, or all of one element",
            &[1, 2, 1, 3],
            |a, x| Ok(vec![a.b.squeeze(x, &[2])?, a.op("squeeze", &[("x", x.into())])?]),
            &[(&[1, 2, 3], same), (&[2, 3], same)],
        ),
        moved(
            "tile repeats whole axes",
            &[2, 2],
            |a, x| Ok(vec![a.b.tile(x, &[1, 2])?, a.b.tile(x, &[2, 1])?]),
            &[
                (&[2, 4], &[0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0]),
                (&[4, 2], &[0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]),
            ],
        ),
    ]
}

fn joins() -> Vec<OpCase> {
    vec![
        case(
            "concat along the first, a middle and the last axis",
            Kind::Exact,
            vec![
                Tensor::f16([1, 2, 2], &[1.0, 2.0, 3.0, 4.0]),
                Tensor::f16([1, 2, 2], &[5.0, 6.0, 7.0, 8.0]),
                Tensor::f16([1, 2, 1], &[9.0, 10.0]),
            ],
            |a, v| Ok(vec![a.b.concat(&v[..2], 0)?, a.b.concat(&v[..2], 1)?, a.b.concat(v, -1)?]),
            vec![
                Tensor::f16([2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                Tensor::f16([1, 4, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                Tensor::f16([1, 2, 5], &[1.0, 2.0, 5.0, 6.0, 9.0, 3.0, 4.0, 7.0, 8.0, 10.0]),
            ],
        ),
        case(
            "concat of one value is that value",
            Kind::Exact,
            vec![Tensor::i32([2], &[7, 8])],
            |a, v| Ok(vec![a.b.concat(v, 0)?]),
            vec![Tensor::i32([2], &[7, 8])],
        ),
        moved(
            "split into equal parts",
            &[1, 6, 1, 1],
            |a, x| a.b.split(x, 3, 1),
            &[(&[1, 2, 1, 1], &[0.0, 1.0]), (&[1, 2, 1, 1], &[2.0, 3.0]), (&[1, 2, 1, 1], &[4.0, 5.0])],
        ),
        moved(
            "split into given sizes along the last axis",
            &[2, 3],
            |a, x| a.b.split_sizes(x, &[1, 2], -1),
            &[(&[2, 1], &[0.0, 3.0]), (&[2, 2], &[1.0, 2.0, 4.0, 5.0])],
        ),
    ]
}

fn lookups() -> Vec<OpCase> {
    let table = || Tensor::f16([3, 2], &counting(6));
    vec![
        case(
            "gather looks rows up",
            Kind::Exact,
            vec![table(), Tensor::i32([2, 2], &[2, 0, 1, 2])],
            |a, v| Ok(vec![a.op("gather", &[("x", v[0].into()), ("indices", v[1].into())])?]),
            vec![Tensor::f16([2, 2, 2], &[4.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])],
        ),
        case(
            "gather along another axis by narrower indices",
            Kind::Exact,
            vec![table(), Tensor::i32([3], &[1, 1, 0])],
            |a, v| {
                let indices = a.b.cast(v[1], DType::U16)?;
                let args = [("x", v[0].into()), ("indices", indices.into()), ("axis", 1.into())];
                Ok(vec![a.op("gather", &args)?])
            },
            vec![Tensor::f16([3, 3], &[1.0, 1.0, 0.0, 3.0, 3.0, 2.0, 5.0, 5.0, 4.0])],
        ),
        case(
            "gather with a batch axis in common",
            Kind::Exact,
            vec![Tensor::f16([2, 3], &counting(6)), Tensor::i32([2, 2], &[0, 2, 1, 1])],
            |a, v| {
                let args = [
                    ("x", v[0].into()),
                    ("indices", v[1].into()),
                    ("axis", 1.into()),
                    ("batch_dims", 1.into()),
                ];
                Ok(vec![a.op("gather", &args)?])
            },
            vec![Tensor::f16([2, 2], &[0.0, 2.0, 4.0, 4.0])],
        ),
    ]
}
