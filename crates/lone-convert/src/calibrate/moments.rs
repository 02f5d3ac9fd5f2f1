//! Products of inputs, no token counting for more than its share.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, Slice};

use crate::palette::on_all_cores;

/// Rows of the result made at a time.
const STRIP: usize = 512;

/// What to multiply each token's `inputs` (T,C) with, (T,1): the root of m / (m + their mean square), where m is the
/// median of those.
///
/// A few tokens of a trained model may be thousands of times larger than the others; errors there do not matter as
/// much more, since what follows norms every token alike.
pub(super) fn share_alike(inputs: &Array2<f32>) -> Array2<f32> {
    let squares: Vec<f32> =
        inputs.rows().into_iter().map(|row| row.dot(&row) / inputs.ncols() as f32).collect();
    let median = median(squares.clone());
    let share = |square: &f32| if median > 0.0 { (median / (median + square)).sqrt() } else { 1.0 };
    Array2::from_shape_fn((squares.len(), 1), |(token, _)| share(&squares[token]))
}

/// Σ x xᵀ (C,C) over the rows x of `inputs` (T,C).
pub(super) fn second_moments(inputs: &Array2<f32>) -> Array2<f32> {
    let columns = inputs.ncols();
    let mut moments = Array2::zeros((columns, columns));
    let strips = moments.axis_chunks_iter_mut(Axis(0), STRIP).enumerate();
    on_all_cores(strips, |(number, strip): (usize, ArrayViewMut2<'_, f32>)| {
        // The rest, below the diagonal, is the same.
        let from = number * STRIP;
        let (_, mut above) = strip.split_at(Axis(1), from);
        let of_columns = inputs.slice_axis(Axis(1), Slice::from(from..));
        general_mat_mul(1.0, &strip_of(inputs, from, above.nrows()).t(), &of_columns, 0.0, &mut above);
    });
    for row in 0..columns {
        for column in 0..row {
            moments[[row, column]] = moments[[column, row]];
        }
    }
    moments
}

fn strip_of(inputs: &Array2<f32>, from: usize, columns: usize) -> ArrayView2<'_, f32> {
    inputs.slice_axis(Axis(1), Slice::from(from..from + columns))
}

fn median(mut values: Vec<f32>) -> f32 {
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(rows: usize, columns: usize, step: f32) -> Array2<f32> {
        Array2::from_shape_fn((rows, columns), |(row, column)| ((row * columns + column) as f32 * step).sin())
    }

    #[test]
    fn moments_are_sums_of_outer_products() {
        let x = waves(5, STRIP + 3, 0.7);
        let moments = second_moments(&x);
        assert_eq!(moments, moments.t());
        for (r, c) in [(0, 0), (2, 1), (0, STRIP + 1), (STRIP + 2, STRIP + 1)] {
            let expected: f32 = x.rows().into_iter().map(|x| x[r] * x[c]).sum();
            assert!((moments[[r, c]] - expected).abs() < 1e-4, "{r} {c}");
        }
    }

    #[test]
    fn a_token_a_thousand_times_larger_counts_twice_as_much_as_another_at_most() {
        let mut x = Array2::ones((10, 2));
        x.row_mut(9).fill(1000.0);
        let squares = (&share_alike(&x) * &x).mapv(|x| x * x);
        assert!((squares[[0, 0]] - 0.5).abs() < 1e-3 && (squares[[9, 0]] - 1.0).abs() < 1e-3, "{squares}");
    }

    #[test]
    fn silence_is_silence() {
        let x = Array2::zeros((3, 2));
        assert_eq!(second_moments(&(&share_alike(&x) * &x)), Array2::<f32>::zeros((2, 2)));
    }
}
