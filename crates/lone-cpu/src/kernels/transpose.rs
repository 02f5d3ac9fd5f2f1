//! Exchange of the last two axes.

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};

impl Kernels {
    /// `from (B, rows, columns)` into `to (B, columns, rows)`.
    ///
    /// # Panics
    /// If the lengths differ or are not a whole number of matrices.
    pub fn transpose(&self, from: &[f32], rows: usize, columns: usize, to: &mut [f32]) {
        let plane = rows * columns;
        assert_eq!(from.len(), to.len(), "transpose: as many elements out as in");
        assert!(plane > 0 && from.len().is_multiple_of(plane), "transpose: from is (B, rows, columns)");
        for (from, to) in from.chunks_exact(plane).zip(to.chunks_exact_mut(plane)) {
            match rows.min(columns) {
                1 => to.copy_from_slice(from),
                _ => self.isa.run(Transpose { from, rows, columns, to }),
            }
        }
    }
}

struct Transpose<'a> {
    from: &'a [f32],
    rows: usize,
    columns: usize,
    to: &'a mut [f32],
}

impl Kernel for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in (0..self.rows).step_by(LANES) {
            let height = LANES.min(self.rows - row);
            for column in (0..self.columns).step_by(LANES) {
                let width = LANES.min(self.columns - column);
                let mut lines = [simd.splat(0.0); LANES];
                for (i, line) in lines.iter_mut().enumerate().take(height) {
                    *line = simd.load_part(&self.from[(row + i) * self.columns + column..][..width]);
                }
                let turned = simd.transpose(lines);
                for (i, line) in turned.iter().enumerate().take(width) {
                    simd.store_part(*line, &mut self.to[(column + i) * self.rows + row..][..height]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Numbers, every_isa};

    #[test]
    fn rows_become_columns() {
        let mut numbers = Numbers::seeded(8);
        for (planes, rows, columns) in
            [(1, 1, 7), (2, 7, 1), (3, 16, 16), (2, 17, 64), (1, 33, 40), (2, 5, 3)]
        {
            let from = numbers.f32s(planes * rows * columns, 1.0);
            for kernels in every_isa() {
                let mut to = vec![0.0; from.len()];
                kernels.transpose(&from, rows, columns, &mut to);
                for (i, x) in from.iter().enumerate() {
                    let (plane, row, column) = (i / (rows * columns), i / columns % rows, i % columns);
                    assert_eq!(to[(plane * columns + column) * rows + row], *x, "{} at {i}", kernels.isa());
                }
            }
        }
    }
}
