//! Regions cut out and replaced, with Python's bounds.

use lone_mil::{Given, Literal, ValueId};

use crate::author::case;
use crate::{Kind, OpCase, Tensor};

/// Name, begin, end, stride, masks (begin, end, squeeze), the result on 0..10.
type Slice = (&'static str, i32, i32, Option<i32>, [bool; 3], &'static [f32]);

const SLICES: &[Slice] = &[
    ("from one to another", 2, 5, None, [false; 3], &[2.0, 3.0, 4.0]),
    ("counted from the end", -3, -1, None, [false; 3], &[7.0, 8.0]),
    ("to beyond the end", 8, 99, None, [false; 3], &[8.0, 9.0]),
    ("with a stride", 1, 8, Some(3), [false; 3], &[1.0, 4.0, 7.0]),
    ("backwards", 8, 2, Some(-2), [false; 3], &[8.0, 6.0, 4.0]),
    ("without a begin", 5, 2, None, [true, false, false], &[0.0, 1.0]),
    ("without an end", 8, 0, None, [false, true, false], &[8.0, 9.0]),
    ("of everything backwards", 0, 0, Some(-3), [true, true, false], &[9.0, 6.0, 3.0, 0.0]),
];

pub(super) fn cases() -> Vec<OpCase> {
    let ten: Vec<f32> = (0..10).map(|x| x as f32).collect();
    let mut cases: Vec<OpCase> = SLICES
        .iter()
        .map(|&(name, begin, end, stride, masks, expected)| {
            case(
                format!("slice_by_index {name}"),
                Kind::Exact,
                vec![Tensor::f16([10], &ten)],
                |a, v| Ok(vec![a.op("slice_by_index", &bounds(v[0], begin, end, stride, masks))?]),
                vec![Tensor::f16([expected.len()], expected)],
            )
        })
        .collect();
    cases.extend(regions());
    cases.extend(updates());
    cases
}

fn bounds(
    x: ValueId,
    begin: i32,
    end: i32,
    stride: Option<i32>,
    masks: [bool; 3],
) -> Vec<(&'static str, Given)> {
    let mut args: Vec<(&str, Given)> =
        vec![("x", x.into()), ("begin", [begin].as_slice().into()), ("end", [end].as_slice().into())];
    args.extend(stride.map(|stride| ("stride", [stride].as_slice().into())));
    for (name, mask) in ["begin_mask", "end_mask", "squeeze_mask"].into_iter().zip(masks) {
        if mask {
            args.push((name, Literal::bools(&[true]).into()));
        }
    }
    args
}

fn regions() -> Vec<OpCase> {
    let grid = || Tensor::f16([2, 3, 2], &(0..12).map(|x| x as f32).collect::<Vec<_>>());
    vec![
        case(
            "slice_by_index of a region",
            Kind::Exact,
            vec![grid()],
            |a, v| Ok(vec![a.b.slice_by_index(v[0], &[0, 1, 1], &[2, 3, 2])?]),
            vec![Tensor::f16([2, 2, 1], &[3.0, 5.0, 9.0, 11.0])],
        ),
        case(
            "slice_by_index drops squeezed axes",
            Kind::Exact,
            vec![grid()],
            |a, v| {
                let args = [
                    ("x", v[0].into()),
                    ("begin", [0, -1, 0].as_slice().into()),
                    ("end", [2, 0, 2].as_slice().into()),
                    ("squeeze_mask", Literal::bools(&[false, true, false]).into()),
                ];
                Ok(vec![a.op("slice_by_index", &args)?])
            },
            vec![Tensor::f16([2, 2], &[4.0, 5.0, 10.0, 11.0])],
        ),
        case(
            "slice_by_size takes so many, or the rest",
            Kind::Exact,
            vec![grid()],
            |a, v| {
                let args = [
                    ("x", v[0].into()),
                    ("begin", [1, 1, 0].as_slice().into()),
                    ("size", [1, -1, 1].as_slice().into()),
                ];
                Ok(vec![a.op("slice_by_size", &args)?])
            },
            vec![Tensor::f16([1, 2, 1], &[8.0, 10.0])],
        ),
        case(
            "slice_by_size from where it is told when it runs",
            Kind::Exact,
            vec![grid(), Tensor::i32([3], &[1, 0, 1])],
            |a, v| {
                let size = [1, 3, 1].as_slice().into();
                Ok(vec![
                    a.op("slice_by_size", &[("x", v[0].into()), ("begin", v[1].into()), ("size", size)])?,
                ])
            },
            vec![Tensor::f16([1, 3, 1], &[7.0, 9.0, 11.0])],
        ),
    ]
}

fn updates() -> Vec<OpCase> {
    let grid = || Tensor::f16([2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    vec![
        case(
            "slice_update replaces a region",
            Kind::Exact,
            vec![grid(), Tensor::f16([2, 1], &[7.0, 8.0])],
            |a, v| {
                let args = [
                    ("x", v[0].into()),
                    ("update", v[1].into()),
                    ("begin", [0, 1].as_slice().into()),
                    ("end", [2, 2].as_slice().into()),
                ];
                Ok(vec![a.op("slice_update", &args)?])
            },
            vec![Tensor::f16([2, 3], &[0.0, 7.0, 2.0, 3.0, 8.0, 5.0])],
        ),
        case(
            "slice_update writes where it is told when it runs",
            Kind::Exact,
            vec![
                grid(),
                Tensor::f16([1, 3], &[7.0, 8.0, 9.0]),
                Tensor::i32([2], &[1, 0]),
                Tensor::i32([2], &[2, 3]),
            ],
            |a, v| {
                let args = [
                    ("x", v[0].into()),
                    ("update", v[1].into()),
                    ("begin", v[2].into()),
                    ("end", v[3].into()),
                ];
                Ok(vec![a.op("slice_update", &args)?])
            },
            vec![Tensor::f16([2, 3], &[0.0, 1.0, 2.0, 7.0, 8.0, 9.0])],
        ),
    ]
}
