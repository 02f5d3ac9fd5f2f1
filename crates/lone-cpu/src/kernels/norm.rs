//! RMS norm over the channels of `(C, S)` columns.

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};

impl Kernels {
    /// `x`, `out` `(B, C, S)`, `weight (C)`: `out = weight * x / sqrt(mean over C of x² + epsilon)`, S =
    /// `columns`.
    ///
    /// Statistics are f32. Norms per head over `(H, d, S)` are B = H; over `(H, S, d)` they are B = H S and
    /// `columns` 1.
    ///
    /// # Panics
    /// If `x` and `out` differ in length or are not a whole number of `(C, S)` planes.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], epsilon: f32, columns: usize, out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "rms_norm: as many elements out as in");
        let plane = weight.len() * columns;
        assert!(plane > 0 && x.len().is_multiple_of(plane), "rms_norm: x is (B, C, S)");
        for (x, out) in x.chunks_exact(plane).zip(out.chunks_exact_mut(plane)) {
            if columns == 1 {
                self.isa.run(ColumnNorm { x, weight, epsilon, out });
            } else {
                self.isa.run(PlaneNorm { x, weight, epsilon, columns, out });
            }
        }
    }
}

/// One column, its channels next to each other.
struct ColumnNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl Kernel for ColumnNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut squares = simd.splat(0.0);
        for x in self.x.chunks(LANES) {
            let x = simd.load_part(x);
            squares = simd.mul_add(x, x, squares);
        }
        let mean = simd.sum(squares) / self.x.len() as f32;
        let divisor = simd.splat((mean + self.epsilon).sqrt());
        for ((x, weight), out) in
            self.x.chunks(LANES).zip(self.weight.chunks(LANES)).zip(self.out.chunks_mut(LANES))
        {
            let scaled = simd.mul(simd.load_part(x), simd.load_part(weight));
            simd.store_part(simd.div(scaled, divisor), out);
        }
    }
}

/// Several columns, taken sixteen at a time.
struct PlaneNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    columns: usize,
    out: &'a mut [f32],
}

impl Kernel for PlaneNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for start in (0..self.columns).step_by(LANES) {
            let block = start..self.columns.min(start + LANES);
            let mut squares = simd.splat(0.0);
            for x in self.x.chunks_exact(self.columns) {
                let x = simd.load_part(&x[block.clone()]);
                squares = simd.mul_add(x, x, squares);
            }
            let mean = simd.div(squares, simd.splat(self.weight.len() as f32));
            let divisor = simd.sqrt(simd.add(mean, simd.splat(self.epsilon)));
            let rows = self
                .x
                .chunks_exact(self.columns)
                .zip(self.weight)
                .zip(self.out.chunks_exact_mut(self.columns));
            for ((x, &weight), out) in rows {
                let scaled = simd.mul(simd.load_part(&x[block.clone()]), simd.splat(weight));
                simd.store_part(simd.div(scaled, divisor), &mut out[block.clone()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Numbers, RMS_NORM_ULPS, assert_ulps, every_isa};

    #[test]
    fn columns_are_normed_each_by_its_own_channels() {
        let mut numbers = Numbers::seeded(5);
        let epsilon = 1e-5;
        for (planes, channels, columns) in
            [(1, 1024, 1), (3, 64, 1), (1, 50, 1), (2, 64, 17), (1, 48, 64), (2, 5, 3)]
        {
            let weight = numbers.f32s(channels, 2.0);
            for (kernels, scale) in
                every_isa().flat_map(|kernels| [1e-3, 1.0, 4000.0].map(|scale| (kernels, scale)))
            {
                let x = numbers.f32s(planes * channels * columns, scale);
                let mut out = vec![0.0; x.len()];
                kernels.rms_norm(&x, &weight, epsilon, columns, &mut out);
                for (i, &out) in out.iter().enumerate() {
                    let (plane, channel, column) =
                        (i / (channels * columns), i / columns % channels, i % columns);
                    let at = |channel: usize| f64::from(x[(plane * channels + channel) * columns + column]);
                    let mean =
                        (0..channels).map(|channel| at(channel) * at(channel)).sum::<f64>() / channels as f64;
                    let expected =
                        f64::from(weight[channel]) * at(channel) / (mean + f64::from(epsilon)).sqrt();
                    let what =
                        format!("{} ({planes}, {channels}, {columns}) x {scale} at {i}", kernels.isa());
                    assert_ulps(out, expected, RMS_NORM_ULPS, &what);
                }
            }
        }
    }
}
