//! Rounded weights times one column or a few, each product a sum along the row: as [`Dots`](super::super::dots::Dots).

use super::{PAIR, Pair, RoundedX, WordRows, WordWidth};
use crate::isa::{Aligned, CACHE_LINE, Kernel, Simd};
use crate::kernels::linear::Blend;

/// More columns than this are faster by panels.
pub(crate) const MOST_COLUMNS: usize = 4;

/// `y[i, s] = blend(Σ_k w[first_row + i, k] * x[s, k])`
pub(crate) struct Int16Dots<'a, B> {
    pub(crate) weights: WordRows<'a, B>,
    pub(crate) first_row: usize,
    pub(crate) x: &'a RoundedX,
    /// `(rows, S)`
    pub(crate) y: &'a mut [f32],
    pub(crate) blend: Blend,
    /// How far ahead of the weights in use to ask for more, in bytes.
    pub(crate) ahead: usize,
}

impl<B: WordWidth> Kernel for Int16Dots<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.x.columns {
            1 => self.run_width::<S, 1>(simd),
            2 => self.run_width::<S, 2>(simd),
            3 => self.run_width::<S, 3>(simd),
            MOST_COLUMNS => self.run_width::<S, MOST_COLUMNS>(simd),
            columns => unreachable!("{columns} columns are a matrix product"),
        }
    }
}

impl<B: WordWidth> Int16Dots<'_, B> {
    /// Computes for `N` columns.
    #[inline(always)]
    fn run_width<S: Simd, const N: usize>(self, simd: S) {
        let Self { weights, first_row, x, blend, ahead, .. } = self;
        let pairs = weights.cols.div_ceil(PAIR);
        let mut columns = [Column { pairs: &[], steps: &[] }; N];
        for (n, column) in columns.iter_mut().enumerate() {
            *column = Column { pairs: &x.pairs[n * pairs..][..pairs], steps: &x.steps[n * pairs..][..pairs] };
        }
        let mut group = weights.group(first_row);
        let mut table = weights.table(simd, group);
        for (row, y) in (first_row..).zip(self.y.as_chunks_mut::<N>().0) {
            if weights.group(row) != group {
                group = weights.group(row);
                table = weights.table(simd, group);
            }
            let mut sums = [[simd.splat(0.0); 2]; N];
            let indices = weights.row(row);
            for (pair, indices) in indices.chunks_exact(B::PAIR_BYTES).enumerate() {
                for line in (0..B::PAIR_BYTES).step_by(CACHE_LINE) {
                    simd.prefetch(indices.as_ptr().wrapping_add(ahead + line));
                }
                let entries = B::pair(simd, &table, indices);
                for (sums, column) in sums.iter_mut().zip(columns) {
                    sums[pair % 2] = column.add_products(simd, &entries, pair, sums[pair % 2]);
                }
            }
            if !weights.cols.is_multiple_of(PAIR) {
                let entries = weights.rest(simd, &table, indices);
                for (sums, column) in sums.iter_mut().zip(columns) {
                    sums[0] = column.add_products(simd, &entries, pairs - 1, sums[0]);
                }
            }
            let scale = weights.scale(row);
            for (sums, y) in sums.into_iter().zip(y) {
                blend.apply(simd.sum(simd.add(sums[0], sums[1])) * scale, y);
            }
        }
    }
}

/// A column of x.
#[derive(Clone, Copy)]
struct Column<'a> {
    pairs: &'a [Aligned<[i16; PAIR]>],
    steps: &'a [f32],
}

impl Column<'_> {
    /// `sums` and the products of `entries` and pair `pair`.
    #[inline(always)]
    fn add_products<S: Simd>(self, simd: S, entries: &Pair<S>, pair: usize, sums: S::F32) -> S::F32 {
        let mut products = simd.no_sums();
        for (&entries, numbers) in entries.iter().zip(self.pairs[pair].0.as_chunks().0) {
            products = simd.add_products(products, entries, simd.load_words(numbers));
        }
        simd.mul_add(simd.float_sums(products), simd.splat(self.steps[pair]), sums)
    }
}
