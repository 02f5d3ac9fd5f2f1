//! Exchange of the last two axes.

use super::Kernels;

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
            if rows == 1 || columns == 1 {
                to.copy_from_slice(from);
                continue;
            }
            for (column, to) in to.chunks_exact_mut(rows).enumerate() {
                for (row, to) in to.iter_mut().enumerate() {
                    *to = from[row * columns + column];
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
