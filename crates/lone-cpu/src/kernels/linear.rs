//! Linear layers: a matrix of weights, rows × cols, times one column (`matvec`) or several (`matmul`) of f32
//! activations.

use half::f16;

use super::Kernels;
use super::dots::{self, Dots};
use super::matmul::{self, Matmul};
use super::weights::{F16Rows, WeightRows};
use crate::isa::LANES;
use crate::pool::Pool;

/// Tasks per thread: enough that a thread which loses its core for a while leaves its share to the others.
const TASKS_PER_THREAD: usize = 8;

/// Bytes of weights below which a task is not worth handing out, prefetching past its end being part of the
/// cost.
const TASK_WEIGHTS: usize = 1 << 17;

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

impl Kernels {
    /// `w (rows, cols)` f16, `x (cols)`, `y (rows)`: `y = blend(w x)`.
    ///
    /// Sums are f32 in an order that depends on the instruction set only: |error| <= `cols` 2^-24 Σ|w x|, in
    /// practice 2^-22 Σ|w x|.
    ///
    /// # Panics
    /// If `w` does not hold `y.len() * x.len()` weights.
    pub fn matvec_f16(&self, pool: &Pool, w: &[f16], x: &[f32], y: &mut [f32], blend: Blend) {
        assert_eq!(w.len(), y.len() * x.len(), "matvec_f16: w holds rows * cols weights");
        self.dots(pool, F16Rows::new(w, x.len()), x, 1, y, blend);
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
        let rows = rows_per_task(y.len() / columns, weights.cols(), pool.threads());
        pool.for_each_chunk(y, rows * columns, |index, y| {
            self.isa.run(Dots { weights, first_row: index * rows, x, columns, y, blend });
        });
    }

    /// How many f32 of scratch [`Kernels::matmul_f16`] needs for `cols` weights a row and `columns` columns.
    pub fn matmul_scratch_len(cols: usize, columns: usize) -> usize {
        cols * columns
    }

    /// `w (rows, cols)` f16, `x (cols, S)`, `y (rows, S)`: `y = blend(w x)`.
    ///
    /// Precision as [`Kernels::matvec_f16`]. What `scratch` holds before does not matter.
    ///
    /// # Panics
    /// If the lengths of `w`, `x` and `y` do not fit, or `scratch` is shorter than
    /// [`Kernels::matmul_scratch_len`] says.
    pub fn matmul_f16(
        &self,
        pool: &Pool,
        w: &[f16],
        x: Columns<'_>,
        y: &mut [f32],
        blend: Blend,
        scratch: &mut [f32],
    ) {
        if y.is_empty() {
            return;
        }
        let rows = y.len() / x.columns;
        let cols = w.len() / rows;
        assert_eq!(y.len(), rows * x.columns, "matmul_f16: y holds rows * S elements");
        assert_eq!(w.len(), rows * cols, "matmul_f16: w holds rows * cols weights");
        let scratch = scratch
            .get_mut(..Self::matmul_scratch_len(cols, x.columns))
            .expect("matmul_f16: scratch is long enough");
        self.matmul(pool, F16Rows::new(w, cols), x, y, blend, scratch);
    }

    fn matmul(
        &self,
        pool: &Pool,
        weights: impl WeightRows,
        x: Columns<'_>,
        y: &mut [f32],
        blend: Blend,
        packed: &mut [f32],
    ) {
        let cols = weights.cols();
        let few = dots::suit(x.columns, cols);
        let width = if few { 1 } else { matmul::group_width(x.columns, self.isa.tile_columns()) };
        pool.for_each_chunk(packed, (width * cols).max(1), |group, packed| {
            matmul::pack_group(x, group * width, packed, cols)
        });
        let packed = &*packed;
        if few {
            return self.dots(pool, weights, packed, x.columns, y, blend);
        }
        let rows = rows_per_task(y.len() / x.columns, cols, pool.threads());
        pool.for_each_chunk(y, rows * x.columns, |index, y| {
            self.isa.run(Matmul {
                weights,
                first_row: index * rows,
                packed,
                width,
                columns: x.columns,
                y,
                blend,
            });
        });
    }
}

/// Whole blocks of rows, so that tasks begin where palettes do.
fn rows_per_task(rows: usize, cols: usize, threads: usize) -> usize {
    if threads == 1 {
        return rows.max(1);
    }
    let least = TASK_WEIGHTS.div_ceil(size_of::<f16>() * cols.max(1));
    rows.div_ceil(threads * TASKS_PER_THREAD).max(least).next_multiple_of(LANES)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::testing::{Numbers, SUM_OF_PRODUCTS, assert_near, every_isa};

    const BLENDS: [Blend; 3] = [Blend::SET, Blend::ADD, Blend { alpha: 0.0625, accumulate: true }];

    /// The product at `row` and `column` in f64, and the sum of its terms' absolute values.
    fn product(w: &[f16], x: Columns<'_>, cols: usize, row: usize, column: usize) -> (f64, f64) {
        let term = |k: usize| f64::from(w[row * cols + k].to_f32()) * f64::from(x.row(k)[column]);
        (0..cols).map(term).fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
    }

    /// Asserts that `y` is `before` blended with `w x`.
    fn assert_product(y: &[f32], before: &[f32], w: &[f16], x: Columns<'_>, blend: Blend, what: &str) {
        let cols = w.len() / (y.len() / x.columns);
        for (i, (&y, &before)) in y.iter().zip(before).enumerate() {
            let (sum, size) = product(w, x, cols, i / x.columns, i % x.columns);
            let before = if blend.accumulate { f64::from(before) } else { 0.0 };
            let alpha = f64::from(blend.alpha);
            assert_near(
                y,
                before + alpha * sum,
                SUM_OF_PRODUCTS * (alpha * size + before.abs()),
                &format!("{what} at {i}"),
            );
        }
    }

    fn pools() -> [Pool; 2] {
        [1, 3].map(|threads| Pool::new(NonZeroUsize::new(threads).unwrap()))
    }

    #[test]
    fn matvec_is_the_product_for_odd_shapes_and_every_blend() {
        let mut numbers = Numbers::seeded(9);
        for (rows, cols) in [(1, 1), (3, 16), (17, 33), (130, 100), (64, 1024), (5, 4608)] {
            let (w, x, before) =
                (numbers.f16s(rows * cols, 1.0), numbers.f32s(cols, 2.0), numbers.f32s(rows, 5.0));
            for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
                for blend in BLENDS {
                    let mut y = before.clone();
                    kernels.matvec_f16(&pool, &w, &x, &mut y, blend);
                    let what = format!("matvec_f16.{} {rows} x {cols} {blend:?}", kernels.isa());
                    assert_product(&y, &before, &w, Columns::dense(&x, 1), blend, &what);
                }
            }
        }
    }

    #[test]
    fn matmul_is_the_product_for_odd_shapes_and_every_number_of_columns() {
        let mut numbers = Numbers::seeded(10);
        let shapes = (1..=26).map(|columns| (20, 40, columns)).chain([
            (1, 1, 2),
            (33, 300, 17),
            (16, 513, 64),
            (48, 64, 150),
            (7, 15, 12),
            (5, 4000, 3),
        ]);
        for (rows, cols, columns) in shapes {
            let (w, before) = (numbers.f16s(rows * cols, 1.0), numbers.f32s(rows * columns, 5.0));
            let stride = columns + columns % 3;
            let data = numbers.f32s((cols - 1) * stride + columns, 2.0);
            let x = Columns { data: &data, columns, stride };
            let mut scratch = vec![f32::NAN; Kernels::matmul_scratch_len(cols, columns)];
            for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
                let blend = BLENDS[columns % BLENDS.len()];
                let mut y = before.clone();
                kernels.matmul_f16(&pool, &w, x, &mut y, blend, &mut scratch);
                let what = format!("matmul_f16.{} {rows} x {cols} x {columns} {blend:?}", kernels.isa());
                assert_product(&y, &before, &w, x, blend, &what);
            }
        }
    }

    #[test]
    fn a_layer_without_inputs_gives_zero() {
        for kernels in every_isa() {
            let (mut y, mut columns) = ([1.0; 3], [1.0; 6]);
            kernels.matvec_f16(&pools()[0], &[], &[], &mut y, Blend::SET);
            kernels.matmul_f16(&pools()[0], &[], Columns::dense(&[], 2), &mut columns, Blend::SET, &mut []);
            assert_eq!((y, columns), ([0.0; 3], [0.0; 6]));
        }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let mut numbers = Numbers::seeded(11);
        let (w, x) = (numbers.f16s(200 * 48, 1.0), numbers.f32s(48 * 5, 1.0));
        for kernels in every_isa() {
            let results = pools().map(|pool| {
                let (mut y, mut columns, mut scratch) = (vec![0.0; 200], vec![0.0; 1000], vec![0.0; 240]);
                kernels.matvec_f16(&pool, &w, &x[..48], &mut y, Blend::SET);
                kernels.matmul_f16(&pool, &w, Columns::dense(&x, 5), &mut columns, Blend::SET, &mut scratch);
                (y, columns)
            });
            assert_eq!(results[0], results[1], "{}", kernels.isa());
        }
    }
}
