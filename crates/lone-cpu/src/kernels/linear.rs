//! Linear layers: a matrix of f16 weights, rows × cols, times one column (`matvec`) or several (`matmul`) of f32 activations.

use half::f16;

use super::Kernels;
use crate::pool::Pool;

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

    fn apply(self, product: f32, y: &mut f32) {
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

    fn row(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..][..self.columns]
    }
}

impl Kernels {
    /// `w (rows, cols)` f16, `x (cols)`, `y (rows)`: `y = blend(w x)`.
    ///
    /// Sums are f32 in an order that depends on the instruction set only: |error| <= `cols` 2^-24 Σ|w x|, in practice 2^-22 Σ|w x|.
    ///
    /// # Panics
    /// If `w` does not hold `y.len() * x.len()` weights.
    pub fn matvec_f16(&self, pool: &Pool, w: &[f16], x: &[f32], y: &mut [f32], blend: Blend) {
        assert_eq!(w.len(), y.len() * x.len(), "matvec_f16: w holds rows * cols weights");
        if x.is_empty() {
            return y.iter_mut().for_each(|y| blend.apply(0.0, y));
        }
        let chunk = y.len().div_ceil(pool.threads()).max(1);
        pool.for_each_chunk(y, chunk, |index, y| {
            for (w, y) in w[index * chunk * x.len()..].chunks_exact(x.len()).zip(y) {
                blend.apply(w.iter().zip(x).map(|(w, x)| w.to_f32() * x).sum(), y);
            }
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
    /// If the lengths of `w`, `x` and `y` do not fit, or `scratch` is shorter than [`Kernels::matmul_scratch_len`] says.
    pub fn matmul_f16(
        &self,
        pool: &Pool,
        w: &[f16],
        x: Columns<'_>,
        y: &mut [f32],
        blend: Blend,
        scratch: &mut [f32],
    ) {
        let columns = x.columns;
        if columns == 0 || y.is_empty() {
            return;
        }
        let rows = y.len() / columns;
        let cols = w.len() / rows;
        assert_eq!(y.len(), rows * columns, "matmul_f16: y holds rows * S elements");
        assert_eq!(w.len(), rows * cols, "matmul_f16: w holds rows * cols weights");
        assert!(scratch.len() >= Self::matmul_scratch_len(cols, columns), "matmul_f16: scratch too short");
        pool.for_each_chunk(y, columns, |row, y| {
            for (column, y) in y.iter_mut().enumerate() {
                let w = &w[row * cols..][..cols];
                blend.apply(w.iter().enumerate().map(|(k, w)| w.to_f32() * x.row(k)[column]).sum(), y);
            }
        });
    }
}
