//! Rounded weights times several columns: as [`Matmul`](super::super::matmul::Matmul), two columns of weights at a time.
//!
//! ```text
//! panel [pair][64][16 rows × 2]   ×   group [pair][64][width × 2]   →   sums [width][16 rows]
//! ```

use std::array::from_fn;

use super::{LARGEST, PAIR, SMALLEST, WORDS, WordRows, WordWidth, place};
use crate::isa::{Aligned, CACHE_LINE, Kernel, LANES, Simd};
use crate::kernels::linear::{Blend, Columns};
use crate::kernels::matmul::{Block, group_width};
use crate::kernels::width::{WidthKernel, with_width};

/// Pairs of chunks a panel.
const DEPTH: usize = 4;

/// Columns of x whose sums a task keeps at a time.
const BATCH: usize = 264;

/// Lines of a pair of chunks in a group: 64 times two numbers of each column, then their steps.
const LINES: usize = PAIR / 2 + 1;

/// The width of the groups that `columns` columns are packed in.
pub(crate) fn width(columns: usize, tile_columns: usize) -> usize {
    group_width(columns, tile_columns)
}

/// How many f32 a group of `width` columns of `cols` elements takes: `(pairs, LINES, width)`.
pub(crate) fn group_len(cols: usize, width: usize) -> usize {
    cols.div_ceil(PAIR) * LINES * width
}

/// Packs the columns of x `(cols, S)` from `first` on into a group.
pub(crate) struct Pack<'a> {
    pub(super) x: Columns<'a>,
    pub(super) first: usize,
    pub(super) cols: usize,
    pub(super) by_fours: bool,
    pub(super) group: &'a mut [f32],
}

/// [`Pack`] for `weights`.
pub(crate) fn pack_group<'a, B: WordWidth>(
    weights: WordRows<'_, B>,
    x: Columns<'a>,
    first: usize,
    group: &'a mut [f32],
) -> Pack<'a> {
    Pack { x, first, cols: weights.cols, by_fours: B::BY_FOURS, group }
}

impl Kernel for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { x, first, cols, by_fours, group } = self;
        let width = group.len() / group_len(cols, 1).max(1);
        for (pair, group) in group.chunks_exact_mut((LINES * width).max(1)).enumerate() {
            let row = |at| {
                let k = pair * PAIR + place(by_fours, at);
                if k < cols { &x.row(k)[first..first + width] } else { &[] }
            };
            let zero = simd.splat(0.0);
            let (mut largest, mut nan) = (simd.splat(SMALLEST), zero);
            for at in 0..PAIR {
                let numbers = simd.load_part(row(at));
                largest = simd.max(largest, simd.max(numbers, simd.sub(zero, numbers)));
                nan = simd.add(nan, simd.sub(numbers, numbers));
            }
            let step = simd.add(simd.div(largest, simd.splat(f32::from(LARGEST))), nan);
            let inverse = simd.div(simd.splat(1.0), step);
            let (lines, steps) = group.split_at_mut(group.len() - width);
            for (two, line) in lines.chunks_exact_mut(width).enumerate() {
                let mut numbers = [zero; 2];
                for (i, numbers) in numbers.iter_mut().enumerate() {
                    *numbers = simd.mul(simd.load_part(row(2 * two + i)), inverse);
                }
                let mut pairs = [[0; 2]; LANES];
                simd.store_rounded_pairs(numbers, &mut pairs);
                line.copy_from_slice(&bytemuck::cast_slice(&pairs)[..width]);
            }
            simd.store_part(step, steps);
        }
    }
}

/// `y[i, s] = blend(Σ_k w[first_row + i, k] * x[k, s])`, x as [`Pack`] packed it.
pub(crate) struct Int16Panels<'a, B> {
    pub(crate) weights: WordRows<'a, B>,
    pub(crate) first_row: usize,
    pub(crate) packed: &'a [f32],
    pub(crate) width: usize,
    pub(crate) columns: usize,
    /// `(rows, S)`
    pub(crate) y: &'a mut [f32],
    pub(crate) blend: Blend,
}

/// Sixteen rows of a pair of chunks, two columns at a time.
type Panel = [[[i16; 2 * LANES]; LANES]; WORDS];

impl<B: WordWidth> Kernel for Int16Panels<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { weights, columns, width, blend, .. } = self;
        let (cols, batch) = (weights.cols, BATCH / width * width);
        let pairs = cols.div_ceil(PAIR);
        let mut panels = Aligned([[[[0; 2 * LANES]; LANES]; WORDS]; DEPTH]);
        let mut sums = Aligned([[0.0; LANES]; BATCH]);
        for (index, y) in self.y.chunks_mut(LANES * columns).enumerate() {
            let first_row = self.first_row + index * LANES;
            let last_row = first_row + y.len() / columns - 1;
            let rows = from_fn(|lane| (first_row + lane).min(last_row));
            for first in (0..columns).step_by(batch) {
                let sums = &mut sums.0[..batch.min(columns - first)];
                sums.fill([0.0; LANES]);
                let packed = &self.packed[group_len(cols, first)..][..group_len(cols, sums.len())];
                for pair in (0..pairs).step_by(DEPTH) {
                    let panels = &mut panels.0[..DEPTH.min(pairs - pair)];
                    fill(simd, weights, rows, pair, panels);
                    let groups = packed.chunks(group_len(cols, width).max(1)).zip(sums.chunks_mut(width));
                    for (group, sums) in groups {
                        let width = sums.len();
                        let group = &group[pair * LINES * width..][..panels.len() * LINES * width];
                        simd.run(Tile { panels, group, sums });
                    }
                }
                for (row, y) in y.chunks_exact_mut(columns).enumerate() {
                    let scale = weights.scale(first_row + row);
                    for (sum, y) in sums.iter().zip(&mut y[first..]) {
                        blend.apply(sum[row] * scale, y);
                    }
                }
            }
        }
    }
}

/// Makes panels of these rows from pair `pair` on; asks for the same of the next sixteen rows.
#[inline(always)]
fn fill<S: Simd, B: WordWidth>(
    simd: S,
    weights: WordRows<'_, B>,
    rows: [usize; LANES],
    pair: usize,
    panels: &mut [Panel],
) {
    let next = LANES * weights.row_bytes;
    let mut group = weights.group(rows[0]);
    let mut table = weights.table(simd, group);
    let indices = rows.map(|row| weights.row(row));
    let mut entries = [[simd.load_words(&[0; 2 * LANES]); LANES]; WORDS];
    for (pair, panel) in (pair..).zip(panels) {
        for (lane, indices) in indices.iter().enumerate() {
            if weights.group(rows[lane]) != group {
                group = weights.group(rows[lane]);
                table = weights.table(simd, group);
            }
            let start = indices.as_ptr().wrapping_add(pair * B::PAIR_BYTES + next);
            for line in (0..B::PAIR_BYTES).step_by(CACHE_LINE) {
                simd.prefetch(start.wrapping_add(line));
            }
            let words = match indices[pair * B::PAIR_BYTES..].get(..B::PAIR_BYTES) {
                Some(indices) => B::pair(simd, &table, indices),
                None => weights.rest(simd, &table, indices),
            };
            for (entries, words) in entries.iter_mut().zip(words) {
                entries[lane] = words;
            }
        }
        for (entries, panel) in entries.into_iter().zip(panel) {
            simd.store_pairs(entries, panel);
        }
    }
}

/// `sums[j] += Σ_k panels[k] * group[k][j]`, for as many columns j as `sums` has.
struct Tile<'a> {
    panels: &'a [Panel],
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
        let lines = self.group.as_chunks::<N>().0.as_chunks::<LINES>().0;
        let mut tile = [simd.splat(0.0); N];
        for (panel, [numbers @ .., steps]) in self.panels.iter().zip(lines) {
            let mut sums = [simd.no_sums(); N];
            for (entries, numbers) in panel.as_flattened().iter().zip(numbers) {
                let entries = simd.load_words(entries);
                for (sum, number) in sums.iter_mut().zip(numbers) {
                    *sum = simd.add_products_of(*sum, entries, bytemuck::cast(*number));
                }
            }
            for ((tile, sum), &step) in tile.iter_mut().zip(sums).zip(steps) {
                *tile = simd.mul_add(simd.float_sums(sum), simd.splat(step), *tile);
            }
        }
        for (tile, sum) in tile.into_iter().zip(self.sums) {
            simd.store(simd.add(simd.load(sum), tile), sum);
        }
    }
}
