//! Regions of tensors: cutting them out and replacing them. Bounds follow Python's slices.

use super::eval::{Eval, Results};
use super::param::{BOOLS, INTS, TENSOR};
use super::{Call, OpError, OpSpec, Param, row};
use crate::interpret::{Tensor, View};
use crate::{Shape, TensorType};

const SLICE: [Param; 6] = [
    Param::new("begin", INTS),
    Param::new("end", INTS),
    Param::constant("stride", INTS).optional(),
    Param::constant("begin_mask", BOOLS).optional(),
    Param::constant("end_mask", BOOLS).optional(),
    Param::constant("squeeze_mask", BOOLS).optional(),
];

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "slice_by_index",
        &[
            Param::new("x", TENSOR),
            Param::constant("begin", INTS),
            Param::constant("end", INTS),
            SLICE[2],
            SLICE[3],
            SLICE[4],
            SLICE[5],
        ],
        infer_by_index,
        eval_by_index,
        "x -> x[begin:end:stride] on each axis; a mask ignores its bound, squeeze_mask takes begin and drops the axis",
    ),
    row(
        "slice_by_size",
        &[Param::new("x", TENSOR), Param::new("begin", INTS), Param::constant("size", INTS)],
        infer_by_size,
        eval_by_size,
        "x -> size[i] elements of axis i from begin[i] on; a size of -1 takes the rest",
    ),
    OpSpec {
        since: super::Opset::CoreML8,
        ..row(
            "slice_update",
            &[
                Param::new("x", TENSOR),
                Param::new("update", TENSOR).like("x"),
                SLICE[0],
                SLICE[1],
                SLICE[2],
                SLICE[3],
                SLICE[4],
                SLICE[5],
            ],
            infer_update,
            eval_update,
            "x -> x with x[begin:end:stride] replaced by update",
        )
    },
];

/// What a slice takes of one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first element.
    pub start: usize,
    /// From one element to the next; not 0, and below it where the order is reversed.
    pub step: i64,
    /// How many elements.
    pub len: usize,
    /// The axis is dropped from the result.
    pub squeezed: bool,
}

impl Range {
    /// `len` elements from `start` on.
    pub(super) fn run(start: usize, len: usize) -> Self {
        Range { start, step: 1, len, squeezed: false }
    }

    /// Python's `begin:end:step` on an axis of `extent`; `None` stands for a bound left out.
    fn python(extent: usize, begin: Option<i64>, end: Option<i64>, step: i64) -> Self {
        let extent = extent as i64;
        // A step down may stop before the first element, a step up after the last.
        let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
        let bound = |bound: i64| (if bound < 0 { bound + extent } else { bound }).clamp(low, high);
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let (begin, end) = (begin.map_or(first, bound), end.map_or(last, bound));
        let span = if step > 0 { end - begin } else { begin - end };
        let len = if span > 0 { (span as u64).div_ceil(step.unsigned_abs()) as usize } else { 0 };
        Range { start: usize::try_from(begin).unwrap_or(0), step, len, squeezed: false }
    }
}

/// What a `slice_by_index`, or a `slice_update` with constant bounds, takes of each axis of `x`.
///
/// # Errors
/// [`OpError`] for bounds that are computed, or that are not one per axis.
pub fn slice_ranges(call: &Call) -> Result<Vec<Range>, OpError> {
    let rank = call.shape("x").len();
    ranges(call, &call.ints_of_len("begin", rank)?, &call.ints_of_len("end", rank)?)
}

/// The same for bounds `begin` and `end`, one per axis of `x`.
pub(super) fn ranges(call: &Call, begin: &[i64], end: &[i64]) -> Result<Vec<Range>, OpError> {
    let x = call.shape("x");
    let flags = |name| -> Result<Vec<bool>, OpError> {
        match call.has(name) {
            true => Ok(call.ints_of_len(name, x.len())?.iter().map(|&flag| flag != 0).collect()),
            false => Ok(vec![false; x.len()]),
        }
    };
    let stride = if call.has("stride") { call.ints_of_len("stride", x.len())? } else { vec![1; x.len()] };
    let (begin_mask, end_mask, squeeze) = (flags("begin_mask")?, flags("end_mask")?, flags("squeeze_mask")?);
    let range = |axis: usize| {
        if stride[axis] == 0 {
            return Err(call.wrong("stride", "no 0", format!("{stride:?}")));
        }
        let from = (!begin_mask[axis]).then_some(begin[axis]);
        if !squeeze[axis] {
            let to = (!end_mask[axis]).then_some(end[axis]);
            return Ok(Range::python(x[axis], from, to, stride[axis]));
        }
        let start = call.normal_axis("begin", from.unwrap_or(0), x[axis])?;
        Ok(Range { squeezed: true, ..Range::run(start, 1) })
    };
    (0..x.len()).map(range).collect()
}

fn shape_of(ranges: &[Range]) -> Shape {
    ranges.iter().filter(|range| !range.squeezed).map(|range| range.len).collect::<Vec<_>>().into()
}

fn infer_by_index(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let shape = shape_of(&slice_ranges(call)?);
    if shape.contains(&0) {
        let bounds = format!("{:?} to {:?}, which leaves {shape}", call.ints("begin")?, call.ints("end")?);
        return Err(call.wrong(
            "end",
            format!("bounds that take something of x {}", call.shape("x")),
            bounds,
        ));
    }
    Ok(vec![TensorType::new(call.dtype("x"), shape)])
}

/// The sizes that `slice_by_size` takes, known but where -1 meets a computed `begin`.
fn infer_by_size(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let x = call.shape("x");
    let sizes = call.ints_of_len("size", x.len())?;
    if **call.shape("begin") != [x.len()] {
        return Err(call.wrong_type("begin", format!("({}), one per axis of x {x}", x.len())));
    }
    let begin = if call.is_constant("begin") { Some(call.ints("begin")?) } else { None };
    let mut shape = Vec::with_capacity(x.len());
    for (axis, &size) in sizes.iter().enumerate() {
        let start =
            begin.as_ref().map(|begin| call.normal_axis("begin", begin[axis], x[axis])).transpose()?;
        let left = start.map_or(x[axis], |start| x[axis] - start);
        shape.push(match usize::try_from(size) {
            Ok(size) if size > 0 && size <= left => size,
            Err(_) if size == -1 && start.is_some() => left,
            _ => {
                return Err(call.wrong("size", format!("at most {left} on axis {axis} of x {x}"), size));
            }
        });
    }
    Ok(vec![TensorType::new(call.dtype("x"), shape)])
}

fn infer_update(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (x, update) = (call.ty("x"), call.shape("update"));
    for name in ["begin", "end"] {
        if **call.shape(name) != [x.shape.len()] {
            let expected = format!("({}), one per axis of x {}", x.shape.len(), x.shape);
            return Err(call.wrong_type(name, expected));
        }
    }
    if call.is_constant("begin") && call.is_constant("end") {
        let region = shape_of(&slice_ranges(call)?);
        if region != *update {
            return Err(call.wrong_type("update", format!("{region}, the region of x {}", x.shape)));
        }
    }
    Ok(vec![x.clone()])
}

/// The view of `ranges` on a row-major buffer of `shape`.
fn view(shape: &Shape, ranges: &[Range]) -> View {
    let strides = shape.strides();
    View {
        start: ranges.iter().zip(&strides).map(|(range, stride)| range.start * stride).sum(),
        dims: ranges.iter().map(|range| range.len).collect(),
        steps: ranges
            .iter()
            .zip(&strides)
            .map(|(range, &stride)| range.step as isize * stride as isize)
            .collect(),
    }
}

/// What `ranges` take of `x`, as a tensor of `shape`.
pub(super) fn cut<'v>(e: &Eval<'_, 'v>, x: &Tensor<'v>, ranges: &[Range], shape: &Shape) -> Tensor<'v> {
    let part = x.viewed(&view(&x.ty.shape, ranges), shape);
    if !x.ty.dtype.is_float() || ranges.last().is_none_or(|range| range.start == 0) {
        return part;
    }
    let mut values = part.as_floats().into_owned();
    e.numerics.width_slice(&mut values);
    Tensor::floats(part.ty.clone(), values)
}

fn eval_by_index<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    e.moved(cut(e, e.tensor("x"), &slice_ranges(e.call)?, &e.result().shape))
}

fn eval_by_size<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let x = e.shape("x");
    let mut ranges = Vec::with_capacity(x.len());
    for (axis, &begin) in e.ints("begin").iter().enumerate() {
        let start = e.call.normal_axis("begin", begin, x[axis])?;
        let len = e.result().shape[axis];
        if start + len > x[axis] {
            let expected = format!("at most {} on axis {axis} of x {x}", x[axis] - len);
            return Err(e.call.wrong("begin", expected, begin));
        }
        ranges.push(Range::run(start, len));
    }
    e.moved(cut(e, e.tensor("x"), &ranges, &e.result().shape))
}

fn eval_update<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    fn replaced<T: Copy>(x: &[T], at: &[usize], update: &[T]) -> Vec<T> {
        let mut out = x.to_vec();
        at.iter().zip(update).for_each(|(&at, &value)| out[at] = value);
        out
    }
    let (x, ty) = (e.shape("x"), e.result().clone());
    let ranges = ranges(e.call, &e.ints("begin"), &e.ints("end"))?;
    if shape_of(&ranges) != *e.shape("update") {
        return Err(e.call.wrong_type("update", format!("{}, the region of x {x}", shape_of(&ranges))));
    }
    let numbers: Vec<usize> = (0..x.elements()).collect();
    let at = view(x, &ranges).of(&numbers);
    e.moved(if e.holds_floats("x") {
        Tensor::floats(ty, replaced(&e.floats("x"), &at, &e.floats("update")))
    } else {
        Tensor::ints(ty, replaced(&e.ints("x"), &at, &e.ints("update")))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rules::{f16, infer, ints};
    use super::*;
    use crate::{DType, Literal};

    #[test]
    fn regions_have_the_extents_of_their_bounds() {
        let slice = |begin: &[i32], end: &[i32]| {
            infer("slice_by_index", &[("x", f16(&[2, 10]))], &[("begin", ints(begin)), ("end", ints(end))])
        };
        let by_size = |begin: &[i32], size: &[i32]| {
            infer("slice_by_size", &[("x", f16(&[2, 10]))], &[("begin", ints(begin)), ("size", ints(size))])
        };
        let cases = [
            (slice(&[0, 2], &[2, -1]), "fp16(2,7)"),
            (
                slice(&[0, 5], &[2, 5]),
                "parameter `end`: expected bounds that take something of x (2,10), found [0, 5] to [2, 5], which leaves (2,0)",
            ),
            (slice(&[0], &[2, 5]), "parameter `begin`: expected 2 values, found 1"),
            (by_size(&[0, 3], &[2, -1]), "fp16(2,7)"),
            (
                by_size(&[0, 3], &[2, 8]),
                "parameter `size`: expected at most 7 on axis 1 of x (2,10), found 8",
            ),
            (by_size(&[0, 10], &[2, 1]), "parameter `begin`: expected an axis of 10, found 10"),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_computed_begin_leaves_the_size_to_be_given() {
        let begin = TensorType::new(DType::I32, [2]);
        let slice = |size: &[i32]| {
            infer("slice_by_size", &[("x", f16(&[2, 10])), ("begin", begin.clone())], &[("size", ints(size))])
        };
        assert_eq!(slice(&[1, 4]), "fp16(1,4)");
        assert_eq!(slice(&[1, -1]), "parameter `size`: expected at most 10 on axis 1 of x (2,10), found -1");
    }

    #[test]
    fn an_update_must_fit_its_region() {
        let update = |update: &[usize]| {
            let bounds = [("begin", ints(&[0, 4])), ("end", ints(&[2, 6]))];
            infer("slice_update", &[("x", f16(&[2, 10])), ("update", f16(update))], &bounds)
        };
        assert_eq!(update(&[2, 2]), "fp16(2,10)");
        assert_eq!(
            update(&[2, 3]),
            "parameter `update`: expected (2,2), the region of x (2,10), found fp16(2,3)"
        );
        let stride = [("begin", ints(&[0])), ("end", ints(&[2])), ("stride", ints(&[0]))];
        assert_eq!(
            infer("slice_by_index", &[("x", f16(&[4]))], &stride),
            "parameter `stride`: expected no 0, found [0]"
        );
        let squeeze =
            [("begin", ints(&[-5])), ("end", ints(&[0])), ("squeeze_mask", Literal::bools(&[true]).into())];
        let found = infer("slice_by_index", &[("x", f16(&[4]))], &squeeze);
        assert_eq!(found, "parameter `begin`: expected an axis of 4, found -5");
    }

    /// Python's slice, spelled out: walk from a bound to the other while inside.
    fn walk(extent: i64, begin: Option<i64>, end: Option<i64>, step: i64) -> Vec<i64> {
        let clamp = |bound: i64, low: i64, high: i64| {
            (if bound < 0 { bound + extent } else { bound }).clamp(low, high)
        };
        let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
        let mut at = begin.map_or(if step > 0 { 0 } else { extent - 1 }, |b| clamp(b, low, high));
        let stop = end.map_or(if step > 0 { extent } else { -1 }, |e| clamp(e, low, high));
        let mut out = Vec::new();
        while (step > 0 && at < stop) || (step < 0 && at > stop) {
            out.push(at);
            at += step;
        }
        out
    }

    proptest! {
        #[test]
        fn a_range_takes_what_python_takes(
            extent in 1usize..9,
            begin in prop::option::of(-12i64..12),
            end in prop::option::of(-12i64..12),
            step in prop_oneof![-4i64..0, 1i64..5],
        ) {
            let range = Range::python(extent, begin, end, step);
            let taken: Vec<i64> = (0..range.len as i64).map(|i| range.start as i64 + i * range.step).collect();
            prop_assert_eq!(taken, walk(extent as i64, begin, end, step));
        }
    }
}
