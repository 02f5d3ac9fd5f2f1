//! Second moments of inputs, no token counting for more than its share.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, Axis, Slice};

use crate::palette::on_all_cores;

/// Rows of the result made at a time.
const STRIP: usize = 256;

/// Σ a x xᵀ (C,C) over `rows` (T,C), with a = m / (m + the mean square of x), where m is the median of those.
///
/// A few tokens of a trained model may be thousands of times larger than the others; errors there do not matter as
/// much more, since what follows norms every token alike.
pub(super) fn second_moments(rows: Vec<f32>, columns: usize) -> Array2<f32> {
    let mut x = Array2::from_shape_vec((rows.len() / columns, columns), rows).expect("inputs are whole rows");
    let squares: Vec<f32> = x.rows().into_iter().map(|row| row.dot(&row) / columns as f32).collect();
    let median = median(squares.clone());
    for (mut row, square) in x.rows_mut().into_iter().zip(squares) {
        row *= if median > 0.0 { (median / (median + square)).sqrt() } else { 1.0 };
    }
    let mut moments = Array2::zeros((columns, columns));
    let strips = moments.axis_chunks_iter_mut(Axis(0), STRIP).enumerate();
    on_all_cores(strips, |(number, mut strip): (usize, ArrayViewMut2<'_, f32>)| {
        // The rest, below the diagonal, is the same.
        let from = number * STRIP;
        let of_rows = x.slice_axis(Axis(1), Slice::from(from..from + strip.nrows()));
        let of_columns = x.slice_axis(Axis(1), Slice::from(from..));
        let mut above = strip.slice_axis_mut(Axis(1), Slice::from(from..));
        general_mat_mul(1.0, &of_rows.t(), &of_columns, 0.0, &mut above);
    });
    for row in 0..columns {
        for column in 0..row {
            moments[[row, column]] = moments[[column, row]];
        }
    }
    moments
}

fn median(mut values: Vec<f32>) -> f32 {
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_sums_of_outer_products() {
        let columns = STRIP + 3;
        let rows: Vec<f32> = (0..5 * columns).map(|i| (i as f32 * 0.7).sin()).collect();
        let moments = second_moments(rows.clone(), columns);
        assert_eq!(moments, moments.t());
        let squares: Vec<f32> = rows.chunks(columns).map(|x| x.iter().map(|x| x * x).sum()).collect();
        let m = median(squares.clone());
        for (r, c) in [(0, 0), (2, 1), (0, STRIP + 1), (STRIP + 2, STRIP + 1)] {
            let expected: f32 =
                (rows.chunks(columns).zip(&squares)).map(|(x, square)| m / (m + square) * x[r] * x[c]).sum();
            assert!((moments[[r, c]] - expected).abs() < 1e-4, "{r} {c}");
        }
    }

    #[test]
    fn a_token_a_thousand_times_larger_counts_twice_as_much_as_another_at_most() {
        let small = [[1.0, 1.0]; 9].concat();
        let moments = second_moments([small.clone(), vec![1000.0, -1000.0]].concat(), 2);
        assert!((moments[[0, 0]] - 5.5).abs() < 1e-3, "{moments}");
    }

    #[test]
    fn silence_has_no_moments() {
        assert_eq!(second_moments(vec![0.0; 6], 2), Array2::<f32>::zeros((2, 2)));
    }
}
