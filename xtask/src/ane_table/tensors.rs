//! Synthetic tensors: seeded, of a stated distribution, rounded to fp16.

use half::f16;

use crate::split_mix::SplitMix;

/// A source of numbers.
pub(super) struct Source(SplitMix);

impl Source {
    pub(super) fn new(seed: u64) -> Self {
        Source(SplitMix(seed))
    }

    /// `count` numbers around 0.
    pub(super) fn normal(&mut self, count: usize, deviation: f32) -> Vec<f16> {
        self.each(count, |words| deviation * words.normal())
    }

    /// `count` numbers of either sign whose magnitudes are as likely twice as half the `median`; `deviation` is that of
    /// their logarithm.
    pub(super) fn log_normal(&mut self, count: usize, median: f32, deviation: f32) -> Vec<f16> {
        self.each(count, |words| {
            let magnitude = median * (deviation * words.normal()).exp();
            if words.next() >> 63 == 0 { magnitude } else { -magnitude }
        })
    }

    /// `count` products `scale * silu(g) * u` of normal numbers, as a gated feed-forward has them inside.
    pub(super) fn gated(&mut self, count: usize, scale: f32) -> Vec<f16> {
        self.each(count, |words| {
            let (gate, up) = (words.normal(), words.normal());
            scale * gate / (1.0 + (-gate).exp()) * up
        })
    }

    fn each(&mut self, count: usize, f: impl Fn(&mut SplitMix) -> f32) -> Vec<f16> {
        (0..count).map(|_| f16::from_f32(f(&mut self.0))).collect()
    }
}

/// `weight (O,I)` times `x (I)` in f64.
pub(super) fn product(weight: &[f16], x: &[f16]) -> Vec<f64> {
    let row = |row: &[f16]| row.iter().zip(x).map(|(w, x)| w.to_f64() * x.to_f64()).sum();
    weight.chunks_exact(x.len()).map(row).collect()
}
