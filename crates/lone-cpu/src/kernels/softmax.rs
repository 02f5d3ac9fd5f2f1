//! Softmax over rows.

use super::Kernels;
use super::activation::exp;
use crate::isa::{Kernel, LANES, Simd};

impl Kernels {
    /// `x (rows, columns)`, in place: `x[i] = e^(x[i] - max) / Σ_j e^(x[j] - max)` of each row.
    ///
    /// Within 4 ulp plus the rounding of an f32 sum of `columns` terms. A row of nothing but -infinity is
    /// NaN.
    ///
    /// # Panics
    /// If `x` is not a whole number of rows.
    pub fn softmax(&self, x: &mut [f32], columns: usize) {
        assert!(columns > 0 && x.len().is_multiple_of(columns), "softmax: x is (rows, columns)");
        self.isa.run(Softmax { x, columns });
    }
}

struct Softmax<'a> {
    x: &'a mut [f32],
    columns: usize,
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in self.x.chunks_exact_mut(self.columns) {
            softmax_row(simd, row);
        }
    }
}

#[inline(always)]
fn softmax_row<S: Simd>(simd: S, row: &mut [f32]) {
    let (blocks, tail) = row.as_chunks_mut::<LANES>();
    let mut largest = simd.splat(f32::NEG_INFINITY);
    for block in blocks.iter() {
        largest = simd.max(largest, simd.load(block));
    }
    let largest = tail.iter().copied().fold(simd.largest(largest), f32::max);
    let shift = simd.splat(largest);
    let mut total = simd.splat(0.0);
    for block in blocks.iter_mut() {
        let power = exp(simd, simd.sub(simd.load(block), shift));
        total = simd.add(total, power);
        simd.store(power, block);
    }
    simd.store_part(exp(simd, simd.sub(simd.load_part(tail), shift)), tail);
    let total = simd.splat(simd.sum(total) + tail.iter().sum::<f32>());
    for block in blocks {
        simd.store(simd.div(simd.load(block), total), block);
    }
    simd.store_part(simd.div(simd.load_part(tail), total), tail);
}

#[cfg(test)]
mod tests {
    use crate::testing::{Numbers, SOFTMAX_ULPS, assert_ulps, every_isa};

    #[test]
    fn rows_become_their_softmax_and_masked_entries_zero() {
        let mut numbers = Numbers::seeded(4);
        for columns in [1, 2, 15, 16, 17, 100] {
            let mut x = numbers.f32s(3 * columns, 20.0);
            x.iter_mut().skip(1).step_by(3).for_each(|x| *x = -40000.0);
            for kernels in every_isa() {
                let mut out = x.clone();
                kernels.softmax(&mut out, columns);
                for (x, out) in x.chunks(columns).zip(out.chunks(columns)) {
                    let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    let total: f64 = x.iter().map(|&x| f64::from(x - largest).exp()).sum();
                    for (&x, &out) in x.iter().zip(out) {
                        let expected = f64::from(x - largest).exp() / total;
                        assert_ulps(
                            out,
                            expected,
                            SOFTMAX_ULPS,
                            &format!("{} {columns} columns", kernels.isa()),
                        );
                    }
                }
            }
        }
    }
}
