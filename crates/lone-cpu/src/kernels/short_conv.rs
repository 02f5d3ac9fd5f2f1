//! The depthwise causal convolution over a short window.

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};

impl Kernels {
    /// `weight (D, K)`, `window (D, K - 1 + S)`, `out (D, S)`: `out[c, s] = Σ_k weight[c, k] * window[c, k +
    /// s]`, S = `columns`.
    ///
    /// K products and sums in f32, in the order of k.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn short_conv(&self, weight: &[f32], window: &[f32], columns: usize, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        let channels = out.len() / columns;
        let taps = weight.len() / channels;
        assert_eq!(out.len(), channels * columns, "short_conv: out is (D, S)");
        assert_eq!(weight.len(), channels * taps, "short_conv: weight is (D, K)");
        assert_eq!(window.len(), channels * (taps + columns - 1), "short_conv: window is (D, K - 1 + S)");
        self.isa.run(ShortConv { weight, window, taps, columns, out });
    }
}

struct ShortConv<'a> {
    weight: &'a [f32],
    window: &'a [f32],
    taps: usize,
    columns: usize,
    out: &'a mut [f32],
}

impl Kernel for ShortConv<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let windows = self.window.chunks_exact(self.taps + self.columns - 1);
        let channels = self.weight.chunks_exact(self.taps).zip(windows);
        for ((weight, window), out) in channels.zip(self.out.chunks_exact_mut(self.columns)) {
            if let [out] = out {
                *out = weight.iter().zip(window).fold(0.0, |sum, (weight, x)| sum + weight * x);
                continue;
            }
            for (block, out) in out.chunks_mut(LANES).enumerate() {
                let mut sum = simd.splat(0.0);
                for (tap, &weight) in weight.iter().enumerate() {
                    let window = &window[block * LANES + tap..][..out.len()];
                    sum = simd.mul_add(simd.splat(weight), simd.load_part(window), sum);
                }
                simd.store_part(sum, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Numbers, SUM_OF_PRODUCTS, assert_near, every_isa};

    #[test]
    fn each_output_weighs_the_taps_before_it() {
        let mut numbers = Numbers::seeded(7);
        for (channels, taps, columns) in [(40, 3, 1), (16, 7, 1), (3, 3, 17), (5, 7, 64), (1, 1, 5)] {
            let weight = numbers.f32s(channels * taps, 1.0);
            let rows = taps - 1 + columns;
            let window = numbers.f32s(channels * rows, 3.0);
            for kernels in every_isa() {
                let mut out = vec![0.0; channels * columns];
                kernels.short_conv(&weight, &window, columns, &mut out);
                for (i, &out) in out.iter().enumerate() {
                    let (c, s) = (i / columns, i % columns);
                    let product =
                        |k: usize| f64::from(weight[c * taps + k]) * f64::from(window[c * rows + k + s]);
                    let (sum, size) =
                        (0..taps).map(product).fold((0.0, 0.0), |(sum, size), p| (sum + p, size + p.abs()));
                    let what = format!("{} ({channels}, {taps}, {columns}) at {i}", kernels.isa());
                    assert_near(out, sum, SUM_OF_PRODUCTS * size, &what);
                }
            }
        }
    }
}
