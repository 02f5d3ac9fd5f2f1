//! For tests: the tolerances of this crate, and numbers to try kernels with.

use half::f16;

use crate::{Isa, Kernels};

/// Ulps, for functions of one or two numbers with results that are not subnormal.
pub(crate) const EXP_ULPS: u32 = 2;
/// As [`EXP_ULPS`].
pub(crate) const SIGMOID_ULPS: u32 = 4;
/// As [`EXP_ULPS`].
pub(crate) const GATED_SILU_ULPS: u32 = 5;
/// As [`EXP_ULPS`].
pub(crate) const RMS_NORM_ULPS: u32 = 32;
/// As [`EXP_ULPS`].
pub(crate) const SOFTMAX_ULPS: u32 = 32;
/// Relative to the sum of the absolute values of the terms: f32 sums of some thousand products.
pub(crate) const SUM_OF_PRODUCTS: f64 = 2.4e-7;
/// Relative to the largest absolute value: attention with scores of some tens.
pub(crate) const ATTENTION: f64 = 8e-6;

/// The kernels of every instruction set this CPU has.
pub(crate) fn every_isa() -> impl Iterator<Item = Kernels> {
    Isa::available().map(Kernels::with_isa)
}

/// Numbers that look random and are the same every time.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// In -1..1.
    pub(crate) fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    /// `count` of them in -scale..scale.
    pub(crate) fn f32s(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.next() * scale).collect()
    }

    /// `count` of them in -scale..scale, rounded to f16.
    pub(crate) fn f16s(&mut self, count: usize, scale: f32) -> Vec<f16> {
        (0..count).map(|_| f16::from_f32(self.next() * scale)).collect()
    }
}

/// Asserts that `found` is within `ulps` of `expected`, or that both are NaN.
#[track_caller]
pub(crate) fn assert_ulps(found: f32, expected: f64, ulps: u32, what: &str) {
    let rounded = expected as f32;
    let ulp = f64::from(rounded.abs().next_up()) - f64::from(rounded.abs());
    let near = (f64::from(found) - expected).abs() <= f64::from(ulps) * ulp
        || found == rounded
        || (found.is_nan() && rounded.is_nan());
    assert!(near, "{what}: found {found:e}, expected {expected:e} within {ulps} ulps");
}

/// Asserts that `found` is within `tolerance` of `expected`.
#[track_caller]
pub(crate) fn assert_near(found: f32, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (f64::from(found) - expected).abs() <= tolerance,
        "{what}: found {found}, expected {expected} within {tolerance:e}"
    );
}
