//! Weights times one column or a few: rows of weights against columns of x, each product a sum along the row.
//!
//! With so few columns this is as fast as weights can be read. Rows are read one after the other, in the
//! order they have in memory, which is what the CPU's own prefetching follows best; it stops at page ends, so
//! the kernel asks for what lies ahead itself, across the ends of rows.

use std::cell::Cell;

use super::linear::Blend;
use super::weights::{BLOCKS, CHUNK, WeightRow, WeightRows};
use crate::isa::{CACHE_LINE, Isa, Kernel, LANES, Simd};

thread_local! {
    /// Where a task puts x in the order in which weights are decoded.
    static ARRANGED: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Columns of two chunks.
const PAIR: usize = 2 * CHUNK;

/// More columns than this are faster by strips or panels.
const MOST_COLUMNS: usize = 4;

/// So are columns with more elements than this in all, which the first cache has no room for.
const MOST_ELEMENTS: usize = 6 << 10;

/// Whether `columns` columns of `cols` elements are few enough.
pub(super) fn suit(columns: usize, cols: usize) -> bool {
    columns == 1 || (columns <= MOST_COLUMNS && columns * cols <= MOST_ELEMENTS)
}

/// `y[i, s] = blend(Σ_k w[first_row + i, k] * x[s, k])`
pub(super) struct Dots<'a, W> {
    pub(super) weights: W,
    pub(super) first_row: usize,
    /// `(S, cols)`, for [`Kernel::run`] in the order in which weights are decoded.
    pub(super) x: &'a [f32],
    /// `(rows, S)`
    pub(super) y: &'a mut [f32],
    pub(super) columns: usize,
    pub(super) blend: Blend,
    /// How far ahead of the weights in use to ask for more, in bytes. What is asked for past the end is fetched in vain.
    pub(super) ahead: usize,
}

impl<W: WeightRows> Dots<'_, W> {
    /// Computes with the instructions of `isa`.
    pub(super) fn run_on(self, isa: Isa) {
        if !W::Row::PAIRED {
            return isa.run(self);
        }
        let mut memory = ARRANGED.take();
        memory.resize(memory.len().max(self.x.len() + CACHE_LINE), 0.0);
        // No block lies across two cache lines.
        let first = memory.as_ptr().align_offset(CACHE_LINE);
        let arranged = &mut memory[first..][..self.x.len()];
        isa.run(Arrange { cols: self.weights.cols(), from: self.x, to: arranged });
        isa.run(Dots { x: arranged, ..self });
        ARRANGED.set(memory);
    }
}

/// Puts each pair of chunks of each column of x in the order of [`Simd::arrange`].
struct Arrange<'a> {
    cols: usize,
    /// `(S, cols)`
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Arrange<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let cols = self.cols.max(1);
        for (from, to) in self.from.chunks_exact(cols).zip(self.to.chunks_exact_mut(cols)) {
            let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<PAIR>(), to.as_chunks_mut::<PAIR>());
            for (from, to) in from.iter().zip(to) {
                let mut blocks = [simd.splat(0.0); 2 * BLOCKS];
                for (block, from) in blocks.iter_mut().zip(from.as_chunks().0) {
                    *block = simd.load(from);
                }
                for (block, to) in simd.arrange(blocks).into_iter().zip(to.as_chunks_mut().0) {
                    simd.store(block, to);
                }
            }
            to_rest.copy_from_slice(from_rest);
        }
    }
}

impl<W: WeightRows> Kernel for Dots<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.columns {
            1 => self.run_width::<S, 1>(simd),
            2 => self.run_width::<S, 2>(simd),
            3 => self.run_width::<S, 3>(simd),
            MOST_COLUMNS => self.run_width::<S, MOST_COLUMNS>(simd),
            columns => unreachable!("{columns} columns are a matrix product"),
        }
    }
}

impl<W: WeightRows> Dots<'_, W> {
    /// Computes for `N` columns.
    #[inline(always)]
    fn run_width<S: Simd, const N: usize>(self, simd: S) {
        let Self { weights, first_row, blend, ahead, .. } = self;
        let x = columns::<N>(self.x, weights.cols());
        let mut group = weights.group(first_row);
        let mut palette = weights.palette(simd, group);
        for (row, y) in (first_row..).zip(self.y.as_chunks_mut::<N>().0) {
            if weights.group(row) != group {
                group = weights.group(row);
                palette = weights.palette(simd, group);
            }
            let sums = dots(simd, weights.row(row), &palette, x, ahead);
            for (y, sum) in y.iter_mut().zip(sums) {
                blend.apply(sum * weights.scale(row), y);
            }
        }
    }
}

/// `x (N, cols)`, cut up.
#[inline(always)]
pub(super) fn columns<const N: usize>(x: &[f32], cols: usize) -> [&[f32]; N] {
    let mut columns = [x; N];
    for (n, column) in columns.iter_mut().enumerate() {
        *column = &x[n * cols..][..cols];
    }
    columns
}

/// `Σ_k row[k] * x[n][k]` for each column n, x being in the order in which the row decodes.
#[inline(always)]
pub(super) fn dots<S: Simd, R: WeightRow, const N: usize>(
    simd: S,
    row: R,
    palette: &R::Palette<S>,
    x: [&[f32]; N],
    ahead: usize,
) -> [f32; N] {
    // Several sums a column where registers are enough, for an addition has to wait for the one before it.
    let chains = match S::TILE_COLUMNS / N {
        BLOCKS.. => BLOCKS,
        2.. => 2,
        _ => 1,
    };
    let mut sums = [[simd.splat(0.0); BLOCKS]; N];
    let x = x.map(|x| x.as_chunks::<CHUNK>());
    let (chunks, rest) = (x[0].0.len(), x[0].1.len());
    let pairs = if R::PAIRED { chunks / 2 } else { 0 };
    for pair in 0..pairs {
        for line in (0..2 * R::CHUNK_BYTES).step_by(CACHE_LINE) {
            row.prefetch(simd, 2 * pair, ahead + line);
        }
        let weights = row.decode_pair(simd, palette, pair);
        for (sums, x) in sums.iter_mut().zip(x) {
            let x = x.0[2 * pair..].as_flattened().as_chunks().0;
            for (i, (weights, x)) in weights.into_iter().zip(x).enumerate() {
                sums[i % chains] = simd.mul_add(weights, simd.load(x), sums[i % chains]);
            }
        }
    }
    for chunk in 2 * pairs..chunks {
        for line in (0..R::CHUNK_BYTES).step_by(CACHE_LINE) {
            row.prefetch(simd, chunk, ahead + line);
        }
        let weights = row.decode(simd, palette, chunk);
        for (sums, x) in sums.iter_mut().zip(x) {
            for (i, (weights, x)) in weights.into_iter().zip(x.0[chunk].as_chunks().0).enumerate() {
                sums[i % chains] = simd.mul_add(weights, simd.load(x), sums[i % chains]);
            }
        }
    }
    if rest > 0 {
        let weights = row.decode_rest(simd, palette);
        for (sums, x) in sums.iter_mut().zip(x) {
            for (weights, x) in weights.into_iter().zip(x.1.chunks(LANES)) {
                sums[0] = simd.mul_add(weights, simd.load_part(x), sums[0]);
            }
        }
    }
    // A closure of `map` would not be compiled with the set's instructions.
    let mut totals = [0.0; N];
    for (total, sums) in totals.iter_mut().zip(&sums) {
        *total = simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3])));
    }
    totals
}
