//! How numbers behave: every rounding, sum and approximation of the interpreter passes through here.
//!
//! The methods a trait implementation leaves alone are exact: computed in f32 from the stored values, sums in f64, to be
//! rounded once when the result is stored. A model of some hardware overrides those that its hardware does otherwise.
//!
//! In f64 the order of a sum does not show: products of fp16 numbers are multiples of 2^-48, so they sum without
//! rounding up to 32, and past that the rounding is 2^29 times finer than f32's.

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::DType;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum Unary {
    Abs,
    Ceil,
    Cos,
    Exp,
    Exp2,
    Floor,
    Inverse,
    Log,
    Relu,
    Round,
    Rsqrt,
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Sqrt,
    Square,
    Tanh,
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum Binary {
    Add,
    FloorDiv,
    Maximum,
    Minimum,
    Mod,
    Mul,
    Pow,
    RealDiv,
    Sub,
}

/// A function of a row of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the operations")]
pub enum Reduction {
    L2Norm,
    Max,
    Mean,
    Min,
    Sum,
    SumSquare,
}

/// What the interpreter's arithmetic does. Values are f32, each one that its tensor's type can hold.
pub trait Numerics: Send + Sync {
    /// The name users choose the backend by.
    fn name(&self) -> &'static str;

    /// Makes computed values into ones that a tensor of `dtype`, fp16 or fp32, holds.
    fn store(&self, dtype: DType, values: &mut [f32]) {
        if dtype == DType::F16 {
            round_to_half(values);
        }
    }

    /// `out[i] = f(x[i])`.
    fn unary(&self, f: Unary, x: &[f32], out: &mut [f32]) {
        f.map(x, out);
    }

    /// `out[i] = f(x[i], y[i])`.
    fn binary(&self, f: Binary, x: &[f32], y: &[f32], out: &mut [f32]) {
        f.map(x, y, out);
    }

    /// `start + sum of x[i] * y[i]`: the one primitive of `conv`, `linear`, `matmul` and attention.
    fn dot(&self, x: &[f32], y: &[f32], start: f32) -> f32 {
        (f64::from(start) + exact_dot(x, y)) as f32
    }

    /// A row reduced to one number. `row` is not empty.
    fn reduce(&self, f: Reduction, row: &[f32]) -> f32 {
        f.of(row)
    }

    /// `e^(x - max) / sum`, in place.
    fn softmax(&self, row: &mut [f32]) {
        let max = Reduction::Max.of(row);
        row.iter_mut().for_each(|x| *x = (*x - max).exp());
        let sum = Reduction::Sum.of(row);
        row.iter_mut().for_each(|x| *x /= sum);
    }

    /// `(x - mean) / sqrt(variance + epsilon)`, in place.
    fn normalize(&self, row: &mut [f32], epsilon: f32) {
        let mean = Reduction::Mean.of(row);
        row.iter_mut().for_each(|x| *x -= mean);
        let variance = Reduction::SumSquare.of(row) / row.len() as f32;
        let scale = 1.0 / (variance + epsilon).sqrt();
        row.iter_mut().for_each(|x| *x *= scale);
    }

    /// What becomes of floats that are read by a slice whose start on the last axis is not 0, in place.
    fn width_slice(&self, _values: &mut [f32]) {}
}

/// Exact arithmetic: f32, sums in f64, each result rounded once to its tensor's type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reference;

impl Numerics for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }
}

/// Rounds to the nearest fp16 values, halves to even.
pub fn round_to_half(values: &mut [f32]) {
    let mut halves = [f16::ZERO; 256];
    for chunk in values.chunks_mut(halves.len()) {
        let halves = &mut halves[..chunk.len()];
        halves.convert_from_f32_slice(chunk);
        halves.convert_to_f32_slice(chunk);
    }
}

/// The sum of products in f64, in sixteen interleaved parts.
fn exact_dot(x: &[f32], y: &[f32]) -> f64 {
    const PARTS: usize = 16;
    let product = |x: f32, y: f32| f64::from(x) * f64::from(y);
    let mut parts = [0.0; PARTS];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<PARTS>(), y.as_chunks::<PARTS>());
    for (x, y) in x.iter().zip(y) {
        for i in 0..PARTS {
            parts[i] += product(x[i], y[i]);
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(&x, &y)| product(x, y)).sum();
    parts.iter().sum::<f64>() + rest
}

/// The sum in f64.
fn exact_sum(row: &[f32]) -> f64 {
    row.iter().copied().map(f64::from).sum()
}

impl Unary {
    /// `out[i] = f(x[i])` in f32.
    pub fn map(self, x: &[f32], out: &mut [f32]) {
        // One loop a function, so that none asks again for every element.
        fn each(x: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32) {
            out.iter_mut().zip(x).for_each(|(out, &x)| *out = f(x));
        }
        match self {
            Unary::Abs => each(x, out, f32::abs),
            Unary::Ceil => each(x, out, f32::ceil),
            Unary::Cos => each(x, out, f32::cos),
            Unary::Exp => each(x, out, f32::exp),
            Unary::Exp2 => each(x, out, f32::exp2),
            Unary::Floor => each(x, out, f32::floor),
            Unary::Inverse => each(x, out, |x| 1.0 / x),
            Unary::Log => each(x, out, f32::ln),
            Unary::Relu => each(x, out, |x| x.max(0.0)),
            Unary::Round => each(x, out, f32::round_ties_even),
            Unary::Rsqrt => each(x, out, |x| 1.0 / x.sqrt()),
            Unary::Sigmoid => each(x, out, |x| 1.0 / (1.0 + (-x).exp())),
            Unary::Sign => each(x, out, |x| if x == 0.0 { 0.0 } else { x.signum() }),
            Unary::Silu => each(x, out, |x| x / (1.0 + (-x).exp())),
            Unary::Sin => each(x, out, f32::sin),
            Unary::Sqrt => each(x, out, f32::sqrt),
            Unary::Square => each(x, out, |x| x * x),
            Unary::Tanh => each(x, out, f32::tanh),
        }
    }
}

impl Binary {
    /// `out[i] = f(x[i], y[i])` in f32.
    pub fn map(self, x: &[f32], y: &[f32], out: &mut [f32]) {
        fn each(x: &[f32], y: &[f32], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
            out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (&x, &y))| *out = f(x, y));
        }
        match self {
            Binary::Add => each(x, y, out, |x, y| x + y),
            Binary::FloorDiv => each(x, y, out, |x, y| (x / y).floor()),
            Binary::Maximum => each(x, y, out, f32::max),
            Binary::Minimum => each(x, y, out, f32::min),
            Binary::Mod => each(x, y, out, |x, y| x - y * (x / y).floor()),
            Binary::Mul => each(x, y, out, |x, y| x * y),
            Binary::Pow => each(x, y, out, f32::powf),
            Binary::RealDiv => each(x, y, out, |x, y| x / y),
            Binary::Sub => each(x, y, out, |x, y| x - y),
        }
    }
}

impl Reduction {
    /// The row reduced, sums in f64.
    pub fn of(self, row: &[f32]) -> f32 {
        match self {
            Reduction::L2Norm => exact_dot(row, row).sqrt() as f32,
            Reduction::Max => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            Reduction::Mean => (exact_sum(row) / row.len() as f64) as f32,
            Reduction::Min => row.iter().copied().fold(f32::INFINITY, f32::min),
            Reduction::Sum => exact_sum(row) as f32,
            Reduction::SumSquare => exact_dot(row, row) as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_to_nearest_and_to_even() {
        let mut values = vec![2049.0, 2051.0, 65519.0, 65520.0, 1e-8, -0.1];
        values.resize(300, 0.1);
        round_to_half(&mut values);
        assert_eq!(values[..6], [2048.0, 2052.0, 65504.0, f32::INFINITY, 0.0, -0.099_975_586]);
        assert_eq!(values[299], 0.099_975_586);
    }

    #[test]
    fn a_dot_of_any_length_sums_every_product() {
        let x: Vec<f32> = (0..37).map(|i| i as f32).collect();
        for n in [0, 1, 15, 16, 17, 37] {
            let expected: f32 = x[..n].iter().map(|x| x * x).sum();
            assert_eq!(Reference.dot(&x[..n], &x[..n], 0.5), expected + 0.5);
        }
    }

    #[test]
    fn the_order_of_a_sum_does_not_show() {
        let numbers = |from: u32| {
            let mut numbers: Vec<f32> =
                (0..997u32).map(|i| (i.wrapping_mul(from) >> 7) as f32 / 3e6 - 100.0).collect();
            round_to_half(&mut numbers);
            numbers
        };
        let (mut x, mut y) = (numbers(2_654_435_761), numbers(2_246_822_519));
        let all = |x: &[f32], y: &[f32]| {
            let mut likely: Vec<f32> = x.iter().map(|x| x / 50.0).collect();
            let sums = [Reference.dot(x, y, 0.1), Reduction::Sum.of(x), Reduction::SumSquare.of(x)];
            Reference.softmax(&mut likely);
            likely.sort_by(f32::total_cmp);
            (sums, likely)
        };
        let before = all(&x, &y);
        for by in [1, 5, 400] {
            x.rotate_left(by);
            y.rotate_left(by);
            assert!(all(&x, &y) == before, "{by} further");
        }
    }

    #[test]
    fn functions_take_their_textbook_values() {
        let of = |f: Unary, x: f32| {
            let mut out = [0.0];
            f.map(&[x], &mut out);
            out[0]
        };
        assert_eq!([-2.5, -0.5, 0.5, 1.5, 2.5].map(|x| of(Unary::Round, x)), [-2.0, 0.0, 0.0, 2.0, 2.0]);
        assert_eq!([-3.0, 0.0, 2.0].map(|x| of(Unary::Sign, x)), [-1.0, 0.0, 1.0]);
        assert_eq!(of(Unary::Sigmoid, 0.0), 0.5);
        assert!((of(Unary::Silu, 1.0) - 0.731_058_6).abs() < 1e-6);
        assert_eq!(of(Unary::Rsqrt, 16.0), 0.25);
        let mut out = [0.0; 4];
        Binary::Mod.map(&[7.0, -7.0, 7.0, -7.0], &[3.0, 3.0, -3.0, -3.0], &mut out);
        assert_eq!(out, [1.0, 2.0, -2.0, -1.0]);
        Binary::FloorDiv.map(&[7.0, -7.0, 7.0, -7.0], &[2.0; 4], &mut out);
        assert_eq!(out, [3.0, -4.0, 3.0, -4.0]);
    }

    #[test]
    fn a_softmax_survives_large_and_masked_scores() {
        let mut row = [1000.0, 1000.0, -40_000.0];
        Reference.softmax(&mut row);
        assert_eq!(row, [0.5, 0.5, 0.0]);
    }
}
