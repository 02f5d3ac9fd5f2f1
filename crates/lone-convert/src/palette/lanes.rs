//! Some rows side by side: a column of them is what a processor adds and compares at once.

use std::ops::Range;

use ndarray::Array2;

/// Rows side by side.
pub(super) const LANES: usize = 16;

/// A number for each row.
type Column<T> = [T; LANES];

/// The columns `block` of up to [`LANES`] rows of `from` (R,C); zeros stand for rows that are missing.
pub(super) fn load(from: &Array2<f32>, rows: &Range<usize>, block: &Range<usize>) -> Vec<Column<f32>> {
    let mut columns = vec![[0.0; LANES]; block.len()];
    for (lane, row) in rows.clone().enumerate() {
        let row = from.row(row);
        let row = &row.to_slice().expect("rows lie in one piece")[block.clone()];
        columns.iter_mut().zip(row).for_each(|(column, &value)| column[lane] = value);
    }
    columns
}

/// What [`load`] read, back to `to` (R,C).
pub(super) fn store<T: Copy>(
    columns: &[Column<T>],
    to: &mut Array2<T>,
    rows: &Range<usize>,
    block: &Range<usize>,
) {
    for (lane, row) in rows.clone().enumerate() {
        let mut row = to.row_mut(row);
        let row = &mut row.as_slice_mut().expect("rows lie in one piece")[block.clone()];
        row.iter_mut().zip(columns).for_each(|(value, column)| *value = column[lane]);
    }
}

/// `columns[c] += factors[c] * column`.
pub(super) fn add_multiples(columns: &mut [Column<f32>], column: &Column<f32>, factors: &[f32]) {
    for (to, factor) in columns.iter_mut().zip(factors) {
        for (to, value) in to.iter_mut().zip(column) {
            *to += factor * value;
        }
    }
}

/// What lies half-way between the neighbouring entries of ascending tables: who is above `n` of them is nearest to entry
/// `n`, and the lower of two entries that are as near has it.
#[derive(Debug)]
pub(super) struct Midpoints {
    /// (tables, entries - 1).
    points: Array2<f32>,
}

impl Midpoints {
    /// Of `tables` (tables, entries).
    pub(super) fn new(tables: &Array2<f32>) -> Self {
        let shape = (tables.nrows(), tables.ncols() - 1);
        let between = |(table, entry)| 0.5 * (tables[[table, entry]] + tables[[table, entry + 1]]);
        Midpoints { points: Array2::from_shape_fn(shape, between) }
    }

    /// For each value the index of the nearest entry of a table.
    pub(super) fn nearest(&self, table: usize, values: &Column<f32>) -> Column<u8> {
        let mut above = [0i32; LANES];
        for &point in self.points.row(table).to_slice().expect("rows lie in one piece") {
            for (above, &value) in above.iter_mut().zip(values) {
                *above += i32::from(value > point);
            }
        }
        above.map(|count| count as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_gets_the_entry_next_to_it_and_of_two_the_lower() {
        let tables = ndarray::arr2(&[[0.0; 4], [-1.0, 0.0, 2.0, 2.0]]);
        let mut values = [0.0; LANES];
        let some = [(-7.0, 0), (-0.5, 0), (-0.4, 1), (1.0, 1), (1.1, 2), (2.0, 2), (9.0, 3)];
        values.iter_mut().zip(some).for_each(|(value, (given, _))| *value = given);
        let nearest = Midpoints::new(&tables).nearest(1, &values);
        assert_eq!(nearest[..some.len()], some.map(|(_, index)| index));
    }

    #[test]
    fn what_was_loaded_is_stored_where_it_was() {
        let array = Array2::from_shape_fn((5, 7), |(row, column)| (10 * row + column) as f32);
        let (rows, block) = (1..4, 2..6);
        let mut columns = load(&array, &rows, &block);
        assert_eq!(
            columns[1],
            [13.0, 23.0, 33.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        );
        let first = columns[0];
        add_multiples(&mut columns[1..], &first, &[0.0, 1.0, 0.0]);
        let mut stored = array.clone();
        store(&columns, &mut stored, &rows, &block);
        for row in rows {
            stored[[row, 4]] -= array[[row, 2]];
        }
        assert_eq!(stored, array);
    }
}
