//! Linear layers: a matrix of weights, rows × cols, times one column (`matvec`) or several (`matmul`) of f32
//! activations.

use std::cell::Cell;

use half::f16;

use super::Kernels;
use super::dots::{self, Dots};
use super::int16::{
    self, Int16Dots, Int16Palettized, Int16Panels, RoundedX, WordRows, WordWidth, Words4, Words6, Words8,
};
use super::matmul::{self, Matmul};
use super::palettes::{
    IndexBits, Lut4, Lut6, Lut8, PaletteRows, Palettized, ShortLut4, ShortLut6, ShortLut8,
};
use super::strips::{self, Strips};
use super::twelve_bits::{TwelveBits, TwelveBitsRows};
use super::weights::{F16Rows, WeightRows};
use crate::isa::LANES;
use crate::pool::Pool;

thread_local! {
    /// Where a thread rounds columns of x.
    static ROUNDED: Cell<RoundedX> = const { Cell::new(RoundedX::new()) };
}

/// Tasks per thread: enough that a thread which loses its core for a while leaves its share to the others.
const TASKS_PER_THREAD: usize = 8;

/// Bytes of weights below which a task is not worth handing out, prefetching past its end being part of the
/// cost.
const TASK_BYTES: usize = 1 << 17;

/// What becomes of a product `p` in the output `y`: `alpha * p`, added to what `y` holds if `accumulate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blend {
    /// Factor of the product.
    pub alpha: f32,
    /// Whether `y` is added to instead of overwritten.
    pub accumulate: bool,
}

impl Blend {
    /// `y = p`
    pub const SET: Self = Self { alpha: 1.0, accumulate: false };
    /// `y = y + p`
    pub const ADD: Self = Self { alpha: 1.0, accumulate: true };

    #[inline(always)]
    pub(super) fn apply(self, product: f32, y: &mut f32) {
        *y = if self.accumulate { *y + self.alpha * product } else { self.alpha * product };
    }
}

/// A row-major f32 matrix (rows, columns) whose rows begin `stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// The elements; the last row may end after its last column.
    pub data: &'a [f32],
    /// S, the columns of a row.
    pub columns: usize,
    /// Elements from the beginning of a row to that of the next, at least `columns`.
    pub stride: usize,
}

impl<'a> Columns<'a> {
    /// The matrix whose rows follow each other without a gap.
    pub fn dense(data: &'a [f32], columns: usize) -> Self {
        Self { data, columns, stride: columns }
    }

    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..][..self.columns]
    }
}

/// A row-major matrix of weights.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// As they are.
    F16(&'a [f16]),
    /// Indices into palettes.
    Palettized(Palettized<'a>),
    /// The entries themselves, in twelve bits each.
    TwelveBits(TwelveBits<'a>),
    /// Indices into rounded palettes; activations are rounded too.
    Int16(Int16Palettized<'a>),
}

impl Weights<'_> {
    fn elements(&self) -> usize {
        match self {
            Weights::F16(weights) => weights.len(),
            Weights::Palettized(matrix) => matrix.elements(),
            Weights::TwelveBits(matrix) => matrix.elements(),
            Weights::Int16(matrix) => matrix.exact.elements(),
        }
    }

    /// # Panics
    /// If these are not `rows` rows of `cols` weights.
    fn check(&self, rows: usize, cols: usize) {
        assert_eq!(self.elements(), rows * cols, "weights are rows * cols");
        match self {
            Weights::F16(_) => {}
            Weights::Palettized(matrix) => matrix.check(rows),
            Weights::TwelveBits(matrix) => matrix.check(rows),
            Weights::Int16(matrix) => matrix.check(rows),
        }
    }
}

/// `$body` with `$rows` as the rows of `$weights`, which are `$cols` long, in the type of their form; `$rounded` if they are
/// rounded.
macro_rules! with_rows {
    ($weights:expr, $cols:expr, |$rows:ident| $body:expr, |$words:ident| $rounded:expr) => {
        match $weights {
            Weights::Int16(matrix) => match matrix.exact.bits {
                IndexBits::Four => {
                    let $words = WordRows::<Words4>::new(matrix, $cols);
                    $rounded
                }
                IndexBits::Six => {
                    let $words = WordRows::<Words6>::new(matrix, $cols);
                    $rounded
                }
                IndexBits::Eight => {
                    let $words = WordRows::<Words8>::new(matrix, $cols);
                    $rounded
                }
            },
            Weights::F16(weights) => {
                let $rows = F16Rows::new(weights, $cols);
                $body
            }
            Weights::TwelveBits(matrix) => {
                let $rows = TwelveBitsRows::new(matrix, $cols);
                $body
            }
            Weights::Palettized(matrix) => match (matrix.bits, matrix.short) {
                (IndexBits::Four, false) => {
                    let $rows = PaletteRows::<Lut4>::new(matrix, $cols);
                    $body
                }
                (IndexBits::Four, true) => {
                    let $rows = PaletteRows::<ShortLut4>::new(matrix, $cols);
                    $body
                }
                (IndexBits::Six, false) => {
                    let $rows = PaletteRows::<Lut6>::new(matrix, $cols);
                    $body
                }
                (IndexBits::Six, true) => {
                    let $rows = PaletteRows::<ShortLut6>::new(matrix, $cols);
                    $body
                }
                (IndexBits::Eight, false) => {
                    let $rows = PaletteRows::<Lut8>::new(matrix, $cols);
                    $body
                }
                (IndexBits::Eight, true) => {
                    let $rows = PaletteRows::<ShortLut8>::new(matrix, $cols);
                    $body
                }
            },
        }
    };
}

impl Kernels {
    /// `w (rows, cols)`, `x (cols)`, `y (rows)`: `y = blend(w x)`.
    ///
    /// Sums are f32 in an order that depends on the instruction set only: |error| <= `cols` 2^-24 Σ|w x|, in
    /// practice 2^-22 Σ|w x|.
    /// Of [`Weights::Int16`], each entry is first rounded by at most 2^-13 of the largest of its palette, and each x by as much of
    /// the largest of the 128 it is rounded with.
    ///
    /// # Panics
    /// If `w` does not hold `y.len() * x.len()` weights, or not a palette for each.
    pub fn matvec(&self, pool: &Pool, w: Weights<'_>, x: &[f32], y: &mut [f32], blend: Blend) {
        w.check(y.len(), x.len());
        with_rows!(w, x.len(), |rows| self.dots(pool, rows, x, 1, y, blend), |rows| {
            self.int16_dots(pool, rows, x, 1, y, blend)
        });
    }

    /// [`Kernels::matvec`] for as many of the rows as `y` is long, from `first_row` on, on this thread.
    ///
    /// # Panics
    /// If `w` does not hold so many rows.
    pub fn matvec_rows(&self, w: Weights<'_>, first_row: usize, x: &[f32], y: &mut [f32], blend: Blend) {
        let ahead = self.pages.prefetch_distance();
        with_rows!(
            w,
            x.len(),
            |weights| Dots { weights, first_row, x, columns: 1, y, blend, ahead }.run_on(self.isa),
            |weights| self.with_rounded(weights, x, 1, |x| {
                self.isa.run(Int16Dots { weights, first_row, x, y, blend, ahead });
            })
        );
    }

    /// Calls `work` with `x (S, cols)` rounded for `weights`.
    fn with_rounded<B: WordWidth>(
        &self,
        weights: WordRows<'_, B>,
        x: &[f32],
        columns: usize,
        work: impl FnOnce(&RoundedX),
    ) {
        let mut rounded = ROUNDED.take();
        rounded.fill(self.isa, weights, x, columns);
        work(&rounded);
        ROUNDED.set(rounded);
    }

    /// x `(S, cols)`
    fn int16_dots<B: WordWidth>(
        &self,
        pool: &Pool,
        weights: WordRows<'_, B>,
        x: &[f32],
        columns: usize,
        y: &mut [f32],
        blend: Blend,
    ) {
        let rows = rows_per_task(y.len() / columns, weights.row_bytes(), pool.threads());
        let ahead = self.pages.prefetch_distance();
        self.with_rounded(weights, x, columns, |x| {
            pool.for_each_chunk(y, rows * columns, |index, y| {
                self.isa.run(Int16Dots { weights, first_row: index * rows, x, y, blend, ahead });
            });
        });
    }

    /// x `(S, cols)`
    fn dots(
        &self,
        pool: &Pool,
        weights: impl WeightRows,
        x: &[f32],
        columns: usize,
        y: &mut [f32],
        blend: Blend,
    ) {
        let rows = rows_per_task(y.len() / columns, weights.row_bytes(), pool.threads());
        let ahead = self.pages.prefetch_distance();
        pool.for_each_chunk(y, rows * columns, |index, y| {
            Dots { weights, first_row: index * rows, x, columns, y, blend, ahead }.run_on(self.isa);
        });
    }

    /// How many f32 of scratch [`Kernels::matmul`] needs for `cols` weights a row and `columns` columns.
    pub fn matmul_scratch_len(cols: usize, columns: usize) -> usize {
        // Rounded columns take less, but for their padding.
        (cols.next_multiple_of(LANES) * columns).max(int16::group_len(cols, columns))
    }

    /// `w (rows, cols)`, `x (cols, S)`, `y (rows, S)`: `y = blend(w x)`.
    ///
    /// Precision as [`Kernels::matvec`]. What `scratch` holds before does not matter.
    ///
    /// # Panics
    /// If the lengths of `w`, `x` and `y` do not fit, or `scratch` is shorter than
    /// [`Kernels::matmul_scratch_len`] says.
    pub fn matmul(
        &self,
        pool: &Pool,
        w: Weights<'_>,
        x: Columns<'_>,
        y: &mut [f32],
        blend: Blend,
        scratch: &mut [f32],
    ) {
        if y.is_empty() {
            return;
        }
        let rows = y.len() / x.columns;
        let cols = w.elements() / rows;
        assert_eq!(y.len(), rows * x.columns, "matmul: y holds rows * S elements");
        w.check(rows, cols);
        let scratch = scratch
            .get_mut(..Self::matmul_scratch_len(cols, x.columns))
            .expect("matmul: scratch is long enough");
        with_rows!(w, cols, |rows| self.matmul_of_rows(pool, rows, x, y, blend, scratch), |rows| {
            self.int16_matmul(pool, rows, x, y, blend, scratch)
        });
    }

    fn int16_matmul<B: WordWidth>(
        &self,
        pool: &Pool,
        weights: WordRows<'_, B>,
        x: Columns<'_>,
        y: &mut [f32],
        blend: Blend,
        packed: &mut [f32],
    ) {
        let (cols, columns) = (weights.cols(), x.columns);
        if columns <= int16::MOST_COLUMNS {
            let packed = self.packed_columns(pool, x, cols, packed);
            return self.int16_dots(pool, weights, packed, columns, y, blend);
        }
        let rows = rows_per_task(y.len() / columns, weights.row_bytes(), pool.threads());
        let width = int16::width(columns, self.isa.tile_columns());
        let packed = &mut packed[..int16::group_len(cols, columns)];
        pool.for_each_chunk(packed, int16::group_len(cols, width).max(1), |group, packed| {
            self.isa.run(int16::pack_group(weights, x, group * width, packed));
        });
        let packed = &*packed;
        pool.for_each_chunk(y, rows * columns, |index, y| {
            self.isa.run(Int16Panels { weights, first_row: index * rows, packed, width, columns, y, blend });
        });
    }

    /// x as `(S, cols)`.
    fn packed_columns<'a>(
        &self,
        pool: &Pool,
        x: Columns<'_>,
        cols: usize,
        packed: &'a mut [f32],
    ) -> &'a [f32] {
        let packed = &mut packed[..cols * x.columns];
        pool.for_each_chunk(packed, cols.max(1), |first, packed| matmul::pack_group(x, first, packed, cols));
        packed
    }

    fn matmul_of_rows(
        &self,
        pool: &Pool,
        weights: impl WeightRows,
        x: Columns<'_>,
        y: &mut [f32],
        blend: Blend,
        packed: &mut [f32],
    ) {
        let (cols, columns) = (weights.cols(), x.columns);
        if dots::suit(columns, cols) {
            let packed = self.packed_columns(pool, x, cols, packed);
            return self.dots(pool, weights, packed, columns, y, blend);
        }
        let rows = rows_per_task(y.len() / columns, weights.row_bytes(), pool.threads());
        let tile_columns = self.isa.tile_columns();
        if strips::suit(columns, cols, tile_columns) {
            let width = strips::width(columns);
            let packed = &mut packed[..cols.next_multiple_of(LANES) * columns];
            pool.for_each_chunk(packed, width * cols.next_multiple_of(LANES), |group, packed| {
                strips::pack(x, group * width, packed, cols)
            });
            let packed = &*packed;
            return pool.for_each_chunk(y, rows * columns, |index, y| {
                self.isa.run(Strips { weights, first_row: index * rows, packed, columns, y, blend });
            });
        }
        let width = matmul::group_width(columns, tile_columns);
        let packed = &mut packed[..cols * columns];
        pool.for_each_chunk(packed, (width * cols).max(1), |group, packed| {
            matmul::pack_group(x, group * width, packed, cols)
        });
        let packed = &*packed;
        pool.for_each_chunk(y, rows * columns, |index, y| {
            self.isa.run(Matmul { weights, first_row: index * rows, packed, width, columns, y, blend });
        });
    }
}

/// Whole blocks of rows, so that only the last task has a panel with fewer.
fn rows_per_task(rows: usize, row_bytes: usize, threads: usize) -> usize {
    if threads == 1 {
        return rows.max(1);
    }
    let least = TASK_BYTES.div_ceil(row_bytes.max(1));
    rows.div_ceil(threads * TASKS_PER_THREAD).max(least).next_multiple_of(LANES)
}

#[cfg(test)]
mod tests;
