//! How far what matrices read is from what they should have read.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, Axis, Slice};

use super::parallel::on_all_cores;

/// Rows of the products made at a time.
const STRIP: usize = 512;

/// Σ d xᵀ (C,C) over tokens, where matrices read x instead of x + d.
#[derive(Debug)]
pub(crate) enum Drift {
    /// The sum.
    Products(Array2<f32>),
    /// Each d and x, (T,C): cheaper to multiply a few rows by, one after the other, than the sum is to make.
    Factors {
        /// The d.
        lacking: Array2<f32>,
        /// The x.
        read: Array2<f32>,
    },
}

impl Drift {
    /// For matrices of so many `rows` together.
    pub(crate) fn new(lacking: Array2<f32>, read: Array2<f32>, rows: usize) -> Self {
        if 2 * rows < read.ncols() {
            Drift::Factors { lacking, read }
        } else {
            Drift::Products(products(&lacking, &read))
        }
    }

    /// Whether all of it is.
    pub(crate) fn is_finite(&self) -> bool {
        let is_finite = |numbers: &Array2<f32>| numbers.iter().all(|number| number.is_finite());
        match self {
            Drift::Products(products) => is_finite(products),
            Drift::Factors { lacking, read } => is_finite(lacking) && is_finite(read),
        }
    }

    /// Columns in another order, and everything `scale` times as much.
    pub(super) fn in_order(&self, order: &[usize], scale: f32) -> Self {
        let of_tokens = |rows: &Array2<f32>, scale: f32| {
            Array2::from_shape_fn(rows.raw_dim(), |(token, place)| scale * rows[[token, order[place]]])
        };
        match self {
            Drift::Products(products) => Drift::Products(scale * in_order(products, order)),
            Drift::Factors { lacking, read } => {
                Drift::Factors { lacking: of_tokens(lacking, scale), read: of_tokens(read, 1.0) }
            }
        }
    }
}

/// Rows and columns (C,C) in another order.
pub(super) fn in_order(products: &Array2<f32>, order: &[usize]) -> Array2<f32> {
    let mut ordered = Array2::zeros(products.raw_dim());
    let strips = order.chunks(STRIP).zip(ordered.axis_chunks_iter_mut(Axis(0), STRIP));
    on_all_cores(strips, |(numbers, mut strip): (&[usize], ArrayViewMut2<'_, f32>)| {
        for (&number, mut row) in numbers.iter().zip(strip.rows_mut()) {
            let from = products.row(number);
            row.iter_mut().zip(order).for_each(|(entry, &column)| *entry = from[column]);
        }
    });
    ordered
}

/// Σ d xᵀ (C,C) over the rows d of `lacking` and x of `inputs`, both (T,C).
fn products(lacking: &Array2<f32>, inputs: &Array2<f32>) -> Array2<f32> {
    let columns = inputs.ncols();
    let mut products = Array2::zeros((columns, columns));
    let strips = products.axis_chunks_iter_mut(Axis(0), STRIP).enumerate();
    on_all_cores(strips, |(number, mut strip): (usize, ArrayViewMut2<'_, f32>)| {
        let rows = Slice::from(number * STRIP..number * STRIP + strip.nrows());
        let of_rows = lacking.slice_axis(Axis(1), rows);
        general_mat_mul(1.0, &of_rows.t(), inputs, 0.0, &mut strip);
    });
    products
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(rows: usize, columns: usize, step: f32) -> Array2<f32> {
        Array2::from_shape_fn((rows, columns), |(row, column)| ((row * columns + column) as f32 * step).sin())
    }

    #[test]
    fn products_are_sums_of_outer_products() {
        let (d, x) = (waves(5, STRIP + 3, 0.3), waves(5, STRIP + 3, 0.7));
        let products = products(&d, &x);
        for (r, c) in [(0, 0), (2, 1), (1, STRIP + 1), (STRIP + 2, 4)] {
            let expected: f32 = d.rows().into_iter().zip(x.rows()).map(|(d, x)| d[r] * x[c]).sum();
            assert!((products[[r, c]] - expected).abs() < 1e-4, "{r} {c}");
        }
    }
}
