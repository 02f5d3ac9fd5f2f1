//! Weights times some columns: more than can be had for reading the weights, fewer than pay for a panel.
//!
//! Four rows by [`DEPTH`] columns of weights become a strip in f32, as they lie, which stays in the first cache while all
//! columns of x pass by it. The innermost loop multiplies the strip by a few columns, lanes along the rows: a
//! block of sums for each row and column, all in registers, so that a block that is read goes into several of them.
//! Nothing is transposed; the price is that the lanes of each sum have to be added up in the end.

use std::ops::Range;

use super::linear::{Blend, Columns};
use super::matmul::{Block, group_width};
use super::weights::{BLOCKS, CHUNK, WeightRow, WeightRows};
use super::width::{WidthKernel, with_width};
use crate::isa::{Aligned, Kernel, LANES, Simd};

/// Columns of weights per strip: whole chunks.
const DEPTH: usize = 1024;

/// Rows of a strip.
const ROWS: usize = 4;

/// Columns of x that pass by at a time: with four rows that is 24 sums.
const WIDTH: usize = 6;

/// Fewer registers than for so many columns of a panel are too few for the sums.
const LEAST_TILE_COLUMNS: usize = 12;

/// More columns than this are faster by panels.
const MOST_COLUMNS: usize = 48;

/// Whether `columns` columns of `cols` elements are multiplied best this way, where panels go with up to `tile_columns`.
pub(super) fn suit(columns: usize, cols: usize, tile_columns: usize) -> bool {
    columns <= MOST_COLUMNS && cols >= CHUNK && tile_columns >= LEAST_TILE_COLUMNS
}

/// The width of the groups that `columns` columns are packed in.
pub(super) fn width(columns: usize) -> usize {
    group_width(columns, WIDTH)
}

/// Packs the columns of x `(cols, S)` from `first` on into a group `(cols / 16, width, 16)`, zeros behind the last of
/// `cols`.
pub(super) fn pack(x: Columns<'_>, first: usize, packed: &mut [f32], cols: usize) {
    let width = packed.len() / cols.next_multiple_of(LANES);
    for (block, packed) in packed.chunks_exact_mut(LANES * width).enumerate() {
        packed.fill(0.0);
        for (lane, k) in (LANES * block..cols).take(LANES).enumerate() {
            for (column, &x) in x.row(k)[first..first + width].iter().enumerate() {
                packed[LANES * column + lane] = x;
            }
        }
    }
}

/// `y[i, s] = blend(Σ_k w[first_row + i, k] * x[k, s])`, x as [`pack`] packed it.
pub(super) struct Strips<'a, W> {
    pub(super) weights: W,
    pub(super) first_row: usize,
    pub(super) packed: &'a [f32],
    pub(super) columns: usize,
    /// `(rows, S)`
    pub(super) y: &'a mut [f32],
    pub(super) blend: Blend,
}

impl<W: WeightRows> Kernel for Strips<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { weights, packed, columns, blend, .. } = self;
        let cols = weights.cols();
        let (width, blocks) = (width(columns), cols.div_ceil(LANES));
        // The next four rows are asked for little by little: all at once they would hold up everything else.
        let next_rows = ROWS * weights.row_bytes();
        let step = next_rows.div_ceil(columns.div_ceil(width) * blocks);
        let mut strip = Aligned([[[0.0; LANES]; ROWS]; DEPTH / LANES]);
        let mut group = weights.group(self.first_row);
        let mut palette = weights.palette(simd, group);
        for (first_row, y) in (self.first_row..).step_by(ROWS).zip(self.y.chunks_mut(ROWS * columns)) {
            let rows = first_row..first_row + y.len() / columns;
            let mut ahead = weights.row(first_row).start().wrapping_add(next_rows);
            let mut scales = [1.0; ROWS];
            for (row, scale) in rows.clone().zip(&mut scales) {
                *scale = weights.scale(row);
            }
            for k in (0..cols).step_by(DEPTH) {
                let strip = &mut strip.0[..DEPTH.min(cols - k).div_ceil(LANES)];
                for (line, row) in rows.clone().enumerate() {
                    if weights.group(row) != group {
                        group = weights.group(row);
                        palette = weights.palette(simd, group);
                    }
                    fill(simd, weights.row(row), &palette, k..cols, strip, line);
                }
                let blend = Blend { accumulate: blend.accumulate || k > 0, ..blend };
                let groups = packed.chunks(width * blocks * LANES);
                for (column, packed) in (0..columns).step_by(width).zip(groups) {
                    let width = width.min(columns - column);
                    let x = &packed[k * width..][..LANES * width * strip.len()];
                    simd.run(Tile { strip, scales, x, width, y, columns, column, blend, ahead, step });
                    ahead = ahead.wrapping_add(step * strip.len());
                }
            }
        }
    }
}

/// Makes line `line` of the strip of the first of `columns` of `row`.
#[inline(always)]
fn fill<S: Simd, R: WeightRow>(
    simd: S,
    row: R,
    palette: &R::Palette<S>,
    columns: Range<usize>,
    strip: &mut [[Block; ROWS]],
    line: usize,
) {
    for (first, strip) in columns.clone().step_by(CHUNK).zip(strip.chunks_mut(BLOCKS)) {
        let blocks = if first + CHUNK <= columns.end {
            row.decode(simd, palette, first / CHUNK)
        } else {
            row.decode_rest(simd, palette)
        };
        for (block, strip) in blocks.into_iter().zip(strip) {
            simd.store(block, &mut strip[line]);
        }
    }
}

/// A strip times a group of columns, which is columns `column` and following of y.
struct Tile<'a> {
    strip: &'a [[Block; ROWS]],
    /// Of its rows.
    scales: [f32; ROWS],
    x: &'a [f32],
    width: usize,
    /// `(rows, columns)`
    y: &'a mut [f32],
    columns: usize,
    column: usize,
    blend: Blend,
    /// What to ask for meanwhile: so many bytes for each block.
    ahead: *const u8,
    step: usize,
}

impl Kernel for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Asked here so that the compiler leaves out what is wider.
        with_width(simd, self.width.min(WIDTH), self);
    }
}

impl WidthKernel for Tile<'_> {
    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let x = self.x.as_chunks::<LANES>().0.as_chunks::<N>().0;
        let mut sums = [[simd.splat(0.0); ROWS]; N];
        for (block, (rows, x)) in self.strip.iter().zip(x).enumerate() {
            simd.prefetch(self.ahead.wrapping_add(block * self.step));
            let mut weights = [simd.splat(0.0); ROWS];
            for (weights, row) in weights.iter_mut().zip(rows) {
                *weights = simd.load(row);
            }
            for (sums, x) in sums.iter_mut().zip(x) {
                let x = simd.load(x);
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = simd.mul_add(weights, x, *sum);
                }
            }
        }
        let mut totals = [[0.0; ROWS]; N];
        for (totals, sums) in totals.iter_mut().zip(sums) {
            *totals = simd.sum_each(sums);
        }
        for (row, y) in self.y.chunks_exact_mut(self.columns).enumerate() {
            for (totals, y) in totals.iter().zip(&mut y[self.column..]) {
                self.blend.apply(totals[row] * self.scales[row], y);
            }
        }
    }
}
