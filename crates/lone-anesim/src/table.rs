//! Activations as the engine has them: 32 straight lines between 33 knots.
//!
//! ```text
//! segment = floor((x - low) / step)        f(x) = slope[segment] * x + intercept[segment], in fp16
//! ```
//! The knots are equally spaced. Each lies below a convex curve, and above a concave one, by a share of what the chord
//! over its neighbours misses, which is what gives `silu` its bias at 0. Domains and shares are chosen so that the
//! errors published for the engine come out; the real tables are not public.

use std::array::from_fn;

use crate::grid::nearest;

/// Straight lines of a table.
const SEGMENTS: usize = 32;

/// One activation.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    low: f32,
    high: f32,
    segments_per_unit: f32,
    lines: [Line; SEGMENTS],
    below: Line,
    above: Line,
    /// The table is that of positive `x`, and `f(-x) = -f(x)`.
    odd: bool,
}

/// `slope * x + intercept`.
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f32,
    intercept: f32,
}

impl Line {
    const ZERO: Line = Line { slope: 0.0, intercept: 0.0 };
    const ONE: Line = Line { slope: 0.0, intercept: 1.0 };
    const IDENTITY: Line = Line { slope: 1.0, intercept: 0.0 };
}

impl Table {
    /// `1 / (1 + e^-x)`, off by at most 0.0034.
    pub(crate) fn sigmoid() -> Self {
        // The domain is the published one.
        Table::of(sigmoid, -9.938, 8.320, 0.2, [Line::ZERO, Line::ONE])
    }

    /// `x / (1 + e^-x)`, -0.00126 at 0.
    pub(crate) fn silu() -> Self {
        Table::of(|x| x * sigmoid(x), -8.0, 8.0, 0.0825, [Line::ZERO, Line::IDENTITY])
    }

    /// The hyperbolic tangent, off by at most 0.0017.
    pub(crate) fn tanh() -> Self {
        // No 33 equally spaced knots on both sides of 0 would be as near.
        Table { odd: true, ..Table::of(f64::tanh, 0.0, 4.25, 0.1, [Line::ZERO, Line::ONE]) }
    }

    /// `f` from `low` to `high`, with `beyond` below and above. The knots miss `f` by `share` of what a chord misses.
    fn of(f: fn(f64) -> f64, low: f64, high: f64, share: f64, beyond: [Line; 2]) -> Self {
        let step = (high - low) / SEGMENTS as f64;
        let knot = |i: usize| {
            let x = low + i as f64 * step;
            (x, f(x) - share / 8.0 * (f(x + step) - 2.0 * f(x) + f(x - step)))
        };
        let line = |i: usize| {
            let ((x, y), (_, next)) = (knot(i), knot(i + 1));
            let slope = nearest((next - y) / step);
            Line { slope, intercept: nearest(y - f64::from(slope) * x) }
        };
        let [below, above] = beyond;
        let segments_per_unit = (1.0 / step) as f32;
        let (low, high) = (low as f32, high as f32);
        Table { low, high, segments_per_unit, lines: from_fn(line), below, above, odd: false }
    }

    /// `f(x)`, to be rounded to fp16; `x` is not NaN.
    pub(crate) fn at(&self, x: f32) -> f32 {
        if self.odd && x < 0.0 {
            return -self.at(-x);
        }
        let line = if x < self.low {
            self.below
        } else if x > self.high {
            self.above
        } else {
            self.lines[(((x - self.low) * self.segments_per_unit) as usize).min(SEGMENTS - 1)]
        };
        // No line through infinity: 0 * inf is not a number.
        if line.slope == 0.0 { line.intercept } else { line.slope * x + line.intercept }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    /// The largest error over all finite fp16 values, at the value where it is.
    fn worst(table: &Table, f: fn(f64) -> f64) -> (f64, f64) {
        let all = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()).filter(|x| x.is_finite());
        all.map(|x| ((f64::from(nearest(table.at(x).into())) - f(x.into())).abs(), x.into()))
            .fold((0.0, 0.0), |worst: (f64, f64), found| if found.0 > worst.0 { found } else { worst })
    }

    /// Whether `found` is within a tenth of what was published.
    fn is_about(found: f64, published: f64) -> bool {
        (found / published - 1.0).abs() < 0.1
    }

    #[test]
    fn the_errors_are_the_published_ones() {
        let (sigmoid_error, at) = worst(&Table::sigmoid(), sigmoid);
        assert!(is_about(sigmoid_error, 0.0034), "sigmoid: {sigmoid_error} at {at}");
        let (tanh_error, at) = worst(&Table::tanh(), f64::tanh);
        assert!(is_about(tanh_error, 0.0017), "tanh: {tanh_error} at {at}");
    }

    #[test]
    fn silu_is_not_zero_at_zero() {
        let found = f64::from(nearest(Table::silu().at(0.0).into()));
        assert!(is_about(found, -0.001_259), "{found}");
    }

    #[test]
    fn far_out_an_activation_is_its_asymptote() {
        let infinity = f32::INFINITY;
        let ends = |table: Table| [table.at(-infinity), table.at(-20.0), table.at(20.0), table.at(infinity)];
        assert_eq!(ends(Table::sigmoid()), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(ends(Table::silu()), [0.0, 0.0, 20.0, infinity]);
        assert_eq!(ends(Table::tanh()), [-1.0, -1.0, 1.0, 1.0]);
    }

    #[test]
    fn tanh_is_odd() {
        let table = Table::tanh();
        assert!([0.1, 0.7, 2.0, 5.0].iter().all(|&x| table.at(-x) == -table.at(x)));
    }
}
