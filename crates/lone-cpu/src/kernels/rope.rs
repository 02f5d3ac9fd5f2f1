//! Rotary position embedding in its split-half form.

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};

impl Kernels {
    /// Rotates blocks of `2 * half` elements: `out = x * cos + concat(-x[half..], x[..half]) * sin`.
    ///
    /// `cos` and `sin` are one or more blocks long and repeat. For `(H, S, d)` with tables `(S, d)`, `half`
    /// is d / 2; for `(H, d, S)` with tables `(d, S)`, it is d S / 2. Two roundings a result, one with fused
    /// multiply-add.
    ///
    /// # Panics
    /// If `x` is not a whole number of tables, or the tables not a whole number of blocks.
    pub fn rope(&self, x: &[f32], cos: &[f32], sin: &[f32], half: usize, out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "rope: as many elements out as in");
        assert_eq!(cos.len(), sin.len(), "rope: cos and sin are of one length");
        assert!(half > 0 && cos.len().is_multiple_of(2 * half), "rope: tables are blocks of 2 half");
        assert!(x.len().is_multiple_of(cos.len().max(1)), "rope: x is a whole number of tables");
        self.isa.run(Rope { x, cos, sin, half, out });
    }
}

struct Rope<'a> {
    x: &'a [f32],
    cos: &'a [f32],
    sin: &'a [f32],
    half: usize,
    out: &'a mut [f32],
}

impl Kernel for Rope<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let block = 2 * self.half;
        let tables = self.cos.chunks_exact(block).zip(self.sin.chunks_exact(block)).cycle();
        for ((x, out), (cos, sin)) in
            self.x.chunks_exact(block).zip(self.out.chunks_exact_mut(block)).zip(tables)
        {
            let (low, high) = x.split_at(self.half);
            let (out_low, out_high) = out.split_at_mut(self.half);
            rotate(simd, low, high, -1.0, &cos[..self.half], &sin[..self.half], out_low);
            rotate(simd, high, low, 1.0, &cos[self.half..], &sin[self.half..], out_high);
        }
    }
}

/// `out = x * cos + sign * other * sin`
#[inline(always)]
fn rotate<S: Simd>(simd: S, x: &[f32], other: &[f32], sign: f32, cos: &[f32], sin: &[f32], out: &mut [f32]) {
    let sources = x.chunks(LANES).zip(other.chunks(LANES)).zip(cos.chunks(LANES).zip(sin.chunks(LANES)));
    for (((x, other), (cos, sin)), out) in sources.zip(out.chunks_mut(LANES)) {
        let turned = simd.mul(simd.mul(simd.load_part(other), simd.splat(sign)), simd.load_part(sin));
        simd.store_part(simd.mul_add(simd.load_part(x), simd.load_part(cos), turned), out);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Numbers, SUM_OF_PRODUCTS, assert_near, every_isa};

    #[test]
    fn halves_rotate_in_both_layouts() {
        let mut numbers = Numbers::seeded(6);
        for (heads, passes, dim) in [(1, 1, 4), (3, 5, 64), (2, 17, 16)] {
            let (cos, sin) = (numbers.f32s(passes * dim, 1.0), numbers.f32s(passes * dim, 1.0));
            let x = numbers.f32s(heads * passes * dim, 5.0);
            // Both layouts of the same numbers: element (head, pass, channel) of the one is (head, channel,
            // pass) of the other.
            let turned = |from: &[f32]| -> Vec<f32> {
                let at = |i: usize| (i / (dim * passes) * passes + i % passes) * dim + i / passes % dim;
                (0..from.len()).map(|i| from[at(i)]).collect()
            };
            for kernels in every_isa() {
                let (mut rows, mut columns) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                kernels.rope(&x, &cos, &sin, dim / 2, &mut rows);
                kernels.rope(&turned(&x), &turned(&cos), &turned(&sin), dim / 2 * passes, &mut columns);
                assert_eq!(turned(&rows), columns, "{}", kernels.isa());
                for (i, &out) in rows.iter().enumerate() {
                    let (block, channel, angle) = (i / dim * dim, i % dim, i % (passes * dim));
                    let other = if channel < dim / 2 {
                        -x[block + channel + dim / 2]
                    } else {
                        x[block + channel - dim / 2]
                    };
                    let products =
                        [f64::from(x[i]) * f64::from(cos[angle]), f64::from(other) * f64::from(sin[angle])];
                    let size = products[0].abs() + products[1].abs();
                    let what = format!("{} ({heads}, {passes}, {dim}) at {i}", kernels.isa());
                    assert_near(out, products[0] + products[1], SUM_OF_PRODUCTS * size, &what);
                }
            }
        }
    }
}
