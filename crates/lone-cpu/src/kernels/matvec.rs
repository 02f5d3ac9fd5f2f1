//! Weights times one column: each weight is used once, so this is as fast as weights can be read.
//!
//! Rows are read one after the other, in the order they have in memory, which is what the CPU's own prefetching follows best; it stops at page ends,
//! so the kernel asks for what lies some pages ahead itself, across the ends of rows.

use super::linear::Blend;
use super::weights::{WeightRow, WeightRows};
use crate::isa::{CACHE_LINE, Kernel, LANES, Simd};

/// Blocks taken at a time, each with a sum of its own.
const BLOCKS: usize = 4;

/// How far ahead of the weights in use to ask for more, in bytes.
const PREFETCH_DISTANCE: usize = 16 << 10;

/// `y[i] = blend(Σ_k w[first_row + i, k] * x[k])`
pub(super) struct Matvec<'a, W> {
    pub(super) weights: W,
    pub(super) first_row: usize,
    pub(super) x: &'a [f32],
    pub(super) y: &'a mut [f32],
    pub(super) blend: Blend,
}

impl<W: WeightRows> Kernel for Matvec<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (index, y) in self.y.iter_mut().enumerate() {
            self.blend.apply(dot(simd, self.weights.row(self.first_row + index), self.x), y);
        }
    }
}

/// `Σ_k row[k] * x[k]`
#[inline(always)]
fn dot<S: Simd, R: WeightRow>(simd: S, row: R, x: &[f32]) -> f32 {
    let (x, x_tail) = x.as_chunks::<LANES>();
    let row = row.whole_blocks(x.len());
    let (groups, rest) = x.as_chunks::<BLOCKS>();
    let mut sums = [simd.splat(0.0); BLOCKS];
    for (group, x) in groups.iter().enumerate() {
        let first = group * BLOCKS;
        for line in (0..BLOCKS * R::BLOCK_BYTES).step_by(CACHE_LINE) {
            row.prefetch(simd, first, PREFETCH_DISTANCE + line);
        }
        for (i, (x, sum)) in x.iter().zip(&mut sums).enumerate() {
            *sum = simd.mul_add(row.decode(simd, first + i), simd.load(x), *sum);
        }
    }
    for (i, x) in rest.iter().enumerate() {
        sums[i] = simd.mul_add(row.decode(simd, groups.len() * BLOCKS + i), simd.load(x), sums[i]);
    }
    if !x_tail.is_empty() {
        sums[BLOCKS - 1] = simd.mul_add(row.decode_tail(simd), simd.load_part(x_tail), sums[BLOCKS - 1]);
    }
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3])))
}
