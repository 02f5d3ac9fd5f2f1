//! Weights times several columns.
//!
//! Sixteen rows by [`DEPTH`] columns of weights become a panel in f32, k outermost, which stays in the first
//! cache while all columns of x pass by it. x is packed beforehand into groups of a few columns, k outermost
//! too. The innermost loop multiplies one panel by one group: a block of sixteen rows for each column of the
//! group, all in registers.
//!
//! ```text
//! panel [k][16 rows]   ×   group [k][width]   →   sums [width][16 rows]
//! ```

use std::array::from_fn;
use std::ops::Range;

use super::linear::{Blend, Columns};
use super::weights::{BLOCKS, CHUNK, WeightRow, WeightRows};
use super::width::{WidthKernel, with_width};
use crate::isa::{Aligned, CACHE_LINE, Kernel, LANES, Simd};

/// Columns of weights per panel: whole chunks.
const DEPTH: usize = 256;

/// Columns of x whose sums a task keeps at a time: all of a prefill pass of 256, in groups of twelve.
const BATCH: usize = 264;

/// Sixteen f32: one number for each row of a panel.
pub(super) type Block = [f32; LANES];

/// The width of the groups that `columns` columns are packed in: as even as they come, at most `widest`.
pub(super) fn group_width(columns: usize, widest: usize) -> usize {
    columns.div_ceil(columns.div_ceil(widest).max(1))
}

/// Packs the columns of x `(cols, S)` from `first` on into a group `(cols, width)`.
pub(super) fn pack_group(x: Columns<'_>, first: usize, packed: &mut [f32], cols: usize) {
    let width = packed.len() / cols;
    for (k, packed) in packed.chunks_exact_mut(width).enumerate() {
        packed.copy_from_slice(&x.row(k)[first..first + width]);
    }
}

/// `y[i, s] = blend(Σ_k w[first_row + i, k] * x[k, s])`, x as [`pack_group`] packed it.
pub(super) struct Matmul<'a, W> {
    pub(super) weights: W,
    pub(super) first_row: usize,
    pub(super) packed: &'a [f32],
    pub(super) width: usize,
    pub(super) columns: usize,
    pub(super) y: &'a mut [f32],
    pub(super) blend: Blend,
}

impl<W: WeightRows> Kernel for Matmul<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let cols = self.weights.cols();
        let batch = BATCH / self.width * self.width;
        let mut panel = Aligned([[0.0; LANES]; DEPTH]);
        let mut sums = Aligned([[0.0; LANES]; BATCH]);
        for (index, y) in self.y.chunks_mut(LANES * self.columns).enumerate() {
            let first_row = self.first_row + index * LANES;
            let rows = PanelRows::new(self.weights, first_row..first_row + y.len() / self.columns);
            for first in (0..self.columns).step_by(batch) {
                let sums = &mut sums.0[..batch.min(self.columns - first)];
                sums.fill([0.0; LANES]);
                let packed = &self.packed[first * cols..][..sums.len() * cols];
                for k in (0..cols).step_by(DEPTH) {
                    let panel = &mut panel.0[..DEPTH.min(cols - k)];
                    rows.fill_panel(simd, k, panel);
                    let groups = packed.chunks(self.width * cols).zip(sums.chunks_mut(self.width));
                    for (group, sums) in groups {
                        let width = sums.len();
                        tile(simd, panel, &group[k * width..][..panel.len() * width], sums);
                    }
                }
                for (row, y) in y.chunks_exact_mut(self.columns).enumerate() {
                    let scale = self.weights.scale(first_row + row);
                    for (sum, y) in sums.iter().zip(&mut y[first..]) {
                        self.blend.apply(sum[row] * scale, y);
                    }
                }
            }
        }
    }
}

/// At most sixteen rows of weights, the last repeated where there are fewer.
pub(super) struct PanelRows<W: WeightRows> {
    weights: W,
    rows: [W::Row; LANES],
    groups: [usize; LANES],
}

impl<W: WeightRows> PanelRows<W> {
    #[inline(always)]
    pub(super) fn new(weights: W, rows: Range<usize>) -> Self {
        let row = |lane: usize| (rows.start + lane).min(rows.end - 1);
        let groups = from_fn(|lane| weights.group(row(lane)));
        Self { weights, rows: from_fn(|lane| weights.row(row(lane))), groups }
    }

    /// Columns `k..k + panel.len()`, transposed, k being the first of a chunk; asks for the same of the next sixteen
    /// rows.
    #[inline(always)]
    pub(super) fn fill_panel<S: Simd>(&self, simd: S, k: usize, panel: &mut [Block]) {
        let next_panel = LANES * self.weights.row_bytes();
        let mut group = self.groups[0];
        let mut palette = self.weights.palette(simd, group);
        let mut lines = [[simd.splat(0.0); BLOCKS]; LANES];
        for (chunk, panel) in (k / CHUNK..).zip(panel.chunks_mut(CHUNK)) {
            for (lane, line) in lines.iter_mut().enumerate() {
                let row = self.rows[lane];
                if self.groups[lane] != group {
                    group = self.groups[lane];
                    palette = self.weights.palette(simd, group);
                }
                for ahead in (0..W::Row::CHUNK_BYTES).step_by(CACHE_LINE) {
                    row.prefetch(simd, chunk, next_panel + ahead);
                }
                *line = match panel.len() {
                    CHUNK => row.decode(simd, &palette, chunk),
                    _ => row.decode_rest(simd, &palette),
                };
            }
            for (block, panel) in panel.chunks_mut(LANES).enumerate() {
                let columns = simd.transpose(from_fn(|lane| lines[lane][block]));
                for (column, to) in columns.into_iter().zip(panel) {
                    simd.store(column, to);
                }
            }
        }
    }
}

/// `sums[j] += Σ_k panel[k] * group[k][j]`, for as many columns j as `sums` has.
///
/// A call of its own: it is long enough, and the same however weights are stored.
#[inline(always)]
pub(super) fn tile<S: Simd>(simd: S, panel: &[Block], group: &[f32], sums: &mut [Block]) {
    simd.run(Tile { panel, group, sums });
}

struct Tile<'a> {
    panel: &'a [Block],
    group: &'a [f32],
    sums: &'a mut [Block],
}

impl Kernel for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        with_width(simd, self.sums.len(), self);
    }
}

impl WidthKernel for Tile<'_> {
    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let mut tile = [simd.splat(0.0); N];
        for (weights, x) in self.panel.iter().zip(self.group.as_chunks::<N>().0) {
            let weights = simd.load(weights);
            for (sum, &x) in tile.iter_mut().zip(x) {
                *sum = simd.mul_add(weights, simd.splat(x), *sum);
            }
        }
        for (tile, sum) in tile.into_iter().zip(self.sums) {
            simd.store(simd.add(simd.load(sum), tile), sum);
        }
    }
}
