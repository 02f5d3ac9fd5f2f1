//! RMS norm that neither overflows nor vanishes in fp16.
//!
//! ```text
//! m = max(|x|, 2^-10)      w x / sqrt(mean(x^2) + eps)  =  w (x/m) / sqrt(mean((x/m)^2) + eps/m^2)
//! ```
//! x/m lies within [-1, 1]. The square of a plain x overflows past 255 and is 0 below 2^-12.5.

use lone_lfm::Tensor;
use lone_mil::{FunctionBuilder, ValueId};

use super::{Built, CHANNEL_AXIS, HEIGHT_AXIS, dim};
use crate::precision::Precision;
use crate::weights::{PackageWeights, Weight};

/// Below this the largest magnitude is taken for it, so that zeros can be divided and eps / m^2 stays finite.
const SMALLEST_DIVISOR: f32 = 1.0 / 1024.0;

/// w x / sqrt(mean(x^2) + eps) over one axis.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    weight: Weight,
    axis: i32,
    eps: f32,
    precision: Precision,
}

impl RmsNorm {
    /// Over the channels of (1,D,1,S).
    pub(crate) fn over_channels<'c>(weights: &mut PackageWeights<'c>, weight: Tensor<'c>, eps: f32) -> Self {
        Self::load(weights, weight, CHANNEL_AXIS, eps)
    }

    /// Over each head of (1,H,d,S).
    pub(crate) fn over_heads<'c>(weights: &mut PackageWeights<'c>, weight: Tensor<'c>, eps: f32) -> Self {
        Self::load(weights, weight, HEIGHT_AXIS, eps)
    }

    fn load<'c>(weights: &mut PackageWeights<'c>, weight: Tensor<'c>, axis: usize, eps: f32) -> Self {
        let precision = weights.precision();
        RmsNorm { weight: weights.vector(weight, axis), axis: dim(axis), eps, precision }
    }

    pub(crate) fn apply(&self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let normed = match self.precision {
            Precision::Rules => self.range_safe(b, x)?,
            Precision::Naive => self.naive(b, x)?,
        };
        let weight = self.weight.value(b)?;
        b.mul(normed, weight)
    }

    fn range_safe(&self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let magnitude = b.abs(x)?;
        let largest = b.reduce_max(magnitude, &[self.axis], true)?;
        let smallest = b.scalar_f16(SMALLEST_DIVISOR)?;
        let divisor = b.maximum(largest, smallest)?;
        let y = b.real_div(x, divisor)?;
        let root_eps = b.scalar_f16(self.eps.sqrt())?;
        let root_eps = b.real_div(root_eps, divisor)?;
        let eps = b.mul(root_eps, root_eps)?;
        self.divide_by_rms(b, y, eps)
    }

    fn naive(&self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let eps = b.scalar_f16(self.eps)?;
        self.divide_by_rms(b, x, eps)
    }

    /// y / sqrt(mean(y^2) + eps).
    fn divide_by_rms(&self, b: &mut FunctionBuilder, y: ValueId, eps: ValueId) -> Built {
        let square = b.mul(y, y)?;
        let mean = b.reduce_mean(square, &[self.axis], true)?;
        let shifted = b.add(mean, eps)?;
        let inverse = b.rsqrt(shifted)?;
        b.mul(y, inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trial::Trial;

    const CHANNELS: usize = 64;
    const EPS: f32 = 1e-5;

    /// The norm of `x` by the graph, with all weights 1.
    fn normed(x: &[f32], precision: Precision) -> Vec<f32> {
        let mut trial = Trial::default();
        let weight = trial.weight("w", [1, CHANNELS, 1, 1], &[1.0; CHANNELS]);
        let norm = RmsNorm { weight, axis: 1, eps: EPS, precision };
        trial.run(&[([1, CHANNELS, 1, 1], x)], |b, inputs| norm.apply(b, inputs[0]))
    }

    fn exact(x: &[f32]) -> Vec<f64> {
        let mean = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / x.len() as f64;
        x.iter().map(|&x| f64::from(x) / (mean + f64::from(EPS)).sqrt()).collect()
    }

    /// Values of size `scale`, with one that is `peak` times as large.
    fn values(scale: f32, peak: f32) -> Vec<f32> {
        let value = |i: usize| scale * (0.2 + (i * 37 % CHANNELS) as f32 / CHANNELS as f32);
        let mut x: Vec<f32> = (0..CHANNELS).map(value).collect();
        x[5] *= -peak;
        x.iter().map(|&x| half::f16::from_f32(x).to_f32()).collect()
    }

    #[test]
    fn large_small_and_uneven_values_keep_three_digits() {
        for (scale, peak) in
            [(1.0, 1.0), (4000.0, 1.0), (1e-3, 1.0), (1.0, 9600.0), (3.0, 300.0), (50_000.0, 1.0)]
        {
            let x = values(scale, peak);
            let largest = exact(&x).iter().fold(0f64, |largest, x| largest.max(x.abs()));
            for (found, expected) in normed(&x, Precision::Rules).into_iter().zip(exact(&x)) {
                let error = (f64::from(found) - expected).abs();
                // A value 9600 times smaller than the largest is near the end of what fp16 resolves.
                let allowed = 1.5e-3 * expected.abs() + 1e-4 * largest;
                assert!(error <= allowed, "{scale}, {peak}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        assert_eq!(normed(&[0.0; CHANNELS], Precision::Rules), [0.0; CHANNELS]);
    }

    #[test]
    fn the_naive_norm_overflows_where_the_rules_do_not() {
        let x = values(4000.0, 1.0);
        assert!(normed(&x, Precision::Naive).iter().all(|&x| x == 0.0));
        assert!(normed(&x, Precision::Rules).iter().all(|&x| x != 0.0));
    }
}
