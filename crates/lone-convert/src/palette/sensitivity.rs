//! What an error in each column of a matrix costs, given what its inputs look like.
//!
//! For inputs x the squared error of y = W x that replacing W by W - E makes is, on average, the sum over rows e of E
//! of e H eᵀ, where H are the second moments of x. With H = U D Uᵀ, U unit upper triangular, it is also the sum of
//! D_c (e U)_c²: once the columns before c are settled, adding what U says of their errors to column c makes up for as
//! much of them as it can, and D_c is what the rest costs.
//!
//! Where x is what palettes further in front have made of x + d, what W should give is W (x + d), and the weights to
//! aim at are not W but those that come nearest to that: W + W M H⁻¹, where M are the products of d and x.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Slice};

use super::drift::{Drift, in_order};
use super::parallel::on_all_cores;

/// Columns factorized at a time.
const BLOCK: usize = 128;

/// Rows updated at a time.
const STRIP: usize = 256;

/// Second moments of the inputs of a matrix, columns in the order they are worth settling.
#[derive(Debug)]
pub(crate) struct Sensitivity {
    /// The column of the matrix that stands at each place: the most excited first.
    pub(super) order: Vec<usize>,
    /// U in its strict upper triangle; the rest means nothing.
    pub(super) factor: Array2<f32>,
    /// D.
    pub(super) pivots: Array1<f32>,
    /// The inverse of each block of U on its diagonal.
    inverses: Vec<Array2<f32>>,
    /// M in that order, where there is any; but M H⁻¹ where it is there as products.
    drift: Option<Drift>,
}

impl Sensitivity {
    /// Of inputs with these second moments (C,C), finite, which count relative to their mean; `damping` is added to
    /// each column's own. `drift` is of what the inputs should be more than they are.
    pub(crate) fn new(moments: &Array2<f32>, drift: Option<Drift>, damping: f32) -> Self {
        let diagonal = moments.diag();
        let mut order: Vec<usize> = (0..diagonal.len()).collect();
        order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]));
        let mut drift = drift.map(|drift| drift.in_order(&order, scale(diagonal)));
        let (factor, pivots) = factorized(damped(moments, &order, damping), damping);
        let inverses = inverses(&factor);
        let mut sensitivity = Sensitivity { order, factor, pivots, inverses, drift: None };
        if let Some(Drift::Products(products)) = &mut drift {
            on_all_cores(products.axis_chunks_iter_mut(Axis(0), STRIP), |strip| sensitivity.divide(strip));
        }
        sensitivity.drift = drift;
        sensitivity
    }

    /// The weights to aim at instead of `weights` (R,C), columns in the order of the sensitivity.
    pub(super) fn aims(&self, weights: Array2<f32>) -> Array2<f32> {
        let change = match &self.drift {
            None => return weights,
            Some(Drift::Products(divided)) => weights.dot(divided),
            Some(Drift::Factors { lacking, read }) => {
                let mut change = weights.dot(&lacking.t()).dot(read);
                self.divide(change.view_mut());
                change
            }
        };
        weights + change
    }

    /// Multiplies `rows` (R,C) by H⁻¹ = U⁻ᵀ D⁻¹ U⁻¹ from the right.
    fn divide(&self, mut rows: ArrayViewMut2<'_, f32>) {
        let columns = rows.ncols();
        for (start, inverse) in (0..columns).step_by(BLOCK).zip(&self.inverses).rev() {
            let (mut before, mut block) = rows.view_mut().split_at(Axis(1), start);
            let mut block = block.slice_axis_mut(Axis(1), Slice::from(..inverse.nrows()));
            let settled = block.dot(&inverse.t());
            block.assign(&settled);
            let units = self.units(0..start, start..start + inverse.nrows());
            general_mat_mul(-1.0, &block, &units.t(), 1.0, &mut before);
        }
        rows /= &self.pivots;
        for (start, inverse) in (0..columns).step_by(BLOCK).zip(&self.inverses) {
            let end = start + inverse.nrows();
            let (mut settled, mut after) = rows.view_mut().split_at(Axis(1), end);
            let mut block = settled.slice_axis_mut(Axis(1), Slice::from(start..));
            let divided = block.dot(inverse);
            block.assign(&divided);
            general_mat_mul(-1.0, &block, &self.units(start..end, end..columns), 1.0, &mut after);
        }
    }

    /// Elements of U above its diagonal.
    fn units(&self, rows: Range<usize>, columns: Range<usize>) -> ArrayView2<'_, f32> {
        let rows = self.factor.slice_axis(Axis(0), Slice::from(rows));
        rows.slice_axis_move(Axis(1), Slice::from(columns))
    }
}

/// H: second moments in another order, relative to their mean, with something added to each column's own.
pub(super) fn damped(moments: &Array2<f32>, order: &[usize], damping: f32) -> Array2<f32> {
    let mut damped = scale(moments.diag()) * in_order(moments, order);
    damped.diag_mut().map_inplace(|moment| *moment += damping);
    damped
}

/// What brings the mean to 1, if it is any.
fn scale(diagonal: ArrayView1<'_, f32>) -> f32 {
    // What is below the normal numbers has no reciprocal.
    diagonal.mean().filter(|&mean| mean >= f32::MIN_POSITIVE).map_or(0.0, f32::recip)
}

/// U and D of a symmetric `matrix` whose eigenvalues are at least `least`; only its upper triangle is read.
fn factorized(mut matrix: Array2<f32>, least: f32) -> (Array2<f32>, Array1<f32>) {
    let columns = matrix.nrows();
    let mut pivots = Array1::zeros(columns);
    for start in (0..columns).step_by(BLOCK).rev() {
        let block = start..columns.min(start + BLOCK);
        let units = settle_diagonal(&mut matrix, block.clone(), least, &mut pivots);
        let pivots = pivots.slice_axis(Axis(0), Slice::from(block.clone()));
        settle_above(&mut matrix, block, &units, pivots);
        subtract_outer(&mut matrix, start, pivots);
    }
    (matrix, pivots)
}

/// Makes the rows `block` of the columns `block` of the matrix those of U, and notes their pivots. Gives the columns
/// of that as rows.
fn settle_diagonal(
    matrix: &mut Array2<f32>,
    block: Range<usize>,
    least: f32,
    pivots: &mut Array1<f32>,
) -> Vec<Vec<f32>> {
    let start = block.start;
    let mut units = vec![Vec::new(); block.len()];
    for column in block.rev() {
        // Rounding may leave a little less than what damping promised.
        let pivot = matrix[[column, column]].max(least);
        pivots[column] = pivot;
        let unit: Vec<f32> = (start..column).map(|row| matrix[[row, column]] / pivot).collect();
        for row in start..column {
            let value = matrix[[row, column]];
            for (before, unit) in (start..column).zip(&unit) {
                matrix[[row, before]] -= value * unit;
            }
            matrix[[row, column]] = unit[row - start];
        }
        units[column - start] = unit;
    }
    units
}

/// Makes the rows above those of U, too.
fn settle_above(
    matrix: &mut Array2<f32>,
    block: Range<usize>,
    units: &[Vec<f32>],
    pivots: ArrayView1<'_, f32>,
) {
    let mut above = matrix.slice_axis_mut(Axis(0), Slice::from(..block.start));
    on_all_cores(above.axis_chunks_iter_mut(Axis(0), STRIP), |mut strip: ArrayViewMut2<'_, f32>| {
        for mut row in strip.rows_mut() {
            let row = &mut row.as_slice_mut().expect("rows lie in one piece")[block.clone()];
            for (place, unit) in units.iter().enumerate().rev() {
                let (before, value) = row[..=place].split_at_mut(place);
                before.iter_mut().zip(unit).for_each(|(entry, unit)| *entry -= value[0] * unit);
                value[0] /= pivots[place];
            }
        }
    });
}

/// Of each block of U on its diagonal, (BLOCK,BLOCK) but for the last.
fn inverses(factor: &Array2<f32>) -> Vec<Array2<f32>> {
    let blocks = (0..factor.nrows()).step_by(BLOCK).map(|start| {
        let units = factor.slice_axis(Axis(0), Slice::from(start..factor.nrows().min(start + BLOCK)));
        let units = units.slice_axis_move(Axis(1), Slice::from(start..));
        let mut inverse = Array2::eye(units.nrows());
        for row in (0..units.nrows()).rev() {
            let (mut above, below) = inverse.view_mut().split_at(Axis(0), row + 1);
            let mut above = above.row_mut(row);
            for (below, column) in below.rows().into_iter().zip(row + 1..) {
                above.scaled_add(-units[[row, column]], &below);
            }
        }
        inverse
    });
    blocks.collect()
}

/// Subtracts the part of the block that begins at `start` from all columns before it.
fn subtract_outer(matrix: &mut Array2<f32>, start: usize, pivots: ArrayView1<'_, f32>) {
    let above = matrix.slice_axis_mut(Axis(0), Slice::from(..start));
    let (mut rest, later) = above.split_at(Axis(1), start);
    let block = later.slice_axis(Axis(1), Slice::from(..pivots.len()));
    let scaled = &block * &pivots;
    let strips = rest.axis_chunks_iter_mut(Axis(0), STRIP).enumerate();
    on_all_cores(strips, |(number, mut strip): (usize, ArrayViewMut2<'_, f32>)| {
        // Of these rows, the columns from the diagonal on.
        let rows = Slice::from(number * STRIP..number * STRIP + strip.nrows());
        let columns = Slice::from(number * STRIP..);
        let (scaled, block) = (scaled.slice_axis(Axis(0), rows), block.slice_axis(Axis(0), columns));
        let mut strip = strip.slice_axis_mut(Axis(1), columns);
        general_mat_mul(-1.0, &scaled, &block.t(), 1.0, &mut strip);
    });
}

/// Second moments of `count` random vectors of `columns` values that hang together.
#[cfg(test)]
pub(super) fn random_moments(columns: usize, count: usize) -> Array2<f32> {
    let x = random_inputs(columns, count);
    x.t().dot(&x)
}

#[cfg(test)]
fn random_inputs(columns: usize, count: usize) -> Array2<f32> {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut x = Array2::from_shape_simple_fn((count, columns), &mut random);
    for c in 1..columns {
        let before = x.column(c - 1).to_owned();
        x.column_mut(c).scaled_add(0.8, &before);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_multiply_to_the_damped_moments() {
        for columns in [1, 5, 64, 150] {
            let moments = random_moments(columns, 400);
            let sensitivity = Sensitivity::new(&moments, None, 0.01);
            let moments = damped(&moments, &sensitivity.order, 0.01);
            let mut unit = sensitivity.factor.clone();
            for ((row, column), entry) in unit.indexed_iter_mut() {
                if row >= column {
                    *entry = if row == column { 1.0 } else { 0.0 };
                }
            }
            let product = (&unit * &sensitivity.pivots).dot(&unit.t());
            let largest = moments[[0, 0]];
            let difference = (product - &moments).mapv(f32::abs);
            assert!(difference.iter().all(|&difference| difference <= 1e-4 * largest), "{columns}");
        }
    }

    #[test]
    fn the_most_excited_column_comes_first_and_dead_ones_do_no_harm() {
        let moments = Array2::from_diag(&ndarray::arr1(&[1.0, 0.0, 5.0]));
        let sensitivity = Sensitivity::new(&moments, None, 0.5);
        assert_eq!(sensitivity.order, [2, 0, 1]);
        assert_eq!(sensitivity.pivots, ndarray::arr1(&[3.0, 1.0, 0.5]));
        for silence in [0.0, 1e-40] {
            let moments = Array2::from_elem((2, 2), silence);
            assert_eq!(Sensitivity::new(&moments, None, 0.5).pivots, ndarray::arr1(&[0.5, 0.5]));
        }
    }

    #[test]
    fn dividing_by_the_moments_undoes_multiplying() {
        for columns in [1, 5, 64, 150] {
            let moments = random_moments(columns, 400);
            let sensitivity = Sensitivity::new(&moments, None, 0.1);
            let rows = Array2::from_shape_fn((3, columns), |(row, column)| ((row + 7 * column) as f32).sin());
            let mut product = rows.dot(&damped(&moments, &sensitivity.order, 0.1));
            sensitivity.divide(product.view_mut());
            let off = (product - rows).mapv(f32::abs);
            assert!(off.iter().all(|&off| off < 1e-3), "{columns}: {off}");
        }
    }

    #[test]
    fn weights_of_inputs_that_came_out_too_small_aim_higher() {
        // Inputs came out as half of what they should be: d is x.
        let x = random_inputs(9, 400);
        let moments = x.t().dot(&x);
        for rows in [1, 100] {
            let drift = Drift::new(x.clone(), x.clone(), rows);
            assert_eq!(matches!(drift, Drift::Factors { .. }), rows == 1);
            let sensitivity = Sensitivity::new(&moments, Some(drift), 1e-5);
            let aims = sensitivity.aims(Array2::ones((1, 9)));
            assert!(aims.iter().all(|&aim| (aim - 2.0).abs() < 1e-2), "{aims}");
        }
    }
}
