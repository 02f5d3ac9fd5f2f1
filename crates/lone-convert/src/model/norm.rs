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
