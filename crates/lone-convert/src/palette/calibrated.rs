//! The order in which a batch is worked on, and the best of what comes of it.
//!
//! ```text
//! W ─▶ tables ─▶ feedback ─▶ tables ─▶ feedback
//!      k-means,   each column   of what the columns
//!      by pivots  makes up for  were aimed at
//!                 those before
//! ```

use ndarray::{Array2, Axis};

use super::batch::{Batch, Setting, TableMaker};

/// Tables made by k-means, each followed by feedback; a third gains nothing.
const FEEDBACKS: usize = 2;

/// Palettizes rows of W (R,C), columns in the order of the sensitivity.
pub(super) fn calibrated<'s>(
    setting: Setting<'s>,
    weights: Array2<f32>,
    maker: &mut TableMaker,
) -> Batch<'s> {
    let mut batch = Batch::new(setting, weights, maker);
    let mut best = Best::new(&batch);
    for round in 0..FEEDBACKS {
        let (aims, costs) = batch.feed_back();
        best.keep(&batch, costs);
        if round + 1 < FEEDBACKS {
            batch.make_tables(&aims, maker);
        }
    }
    best.restore(&mut batch);
    batch
}

/// The best state of each group so far.
struct Best {
    costs: Vec<f64>,
    tables: Array2<f32>,
    indices: Array2<u8>,
}

impl Best {
    fn new(batch: &Batch<'_>) -> Self {
        let costs = vec![f64::INFINITY; batch.groups()];
        Best { costs, tables: batch.tables.clone(), indices: batch.indices.clone() }
    }

    /// Takes over the groups that cost less than ever before.
    fn keep(&mut self, batch: &Batch<'_>, costs: Vec<f64>) {
        for (group, cost) in costs.into_iter().enumerate() {
            if cost < self.costs[group] {
                self.costs[group] = cost;
                let (rows, tables) = (batch.rows_of(group), batch.tables_of(group));
                self.indices.slice_axis_mut(Axis(0), rows).assign(&batch.indices.slice_axis(Axis(0), rows));
                self.tables.slice_axis_mut(Axis(0), tables).assign(&batch.tables.slice_axis(Axis(0), tables));
            }
        }
    }

    fn restore(&self, batch: &mut Batch<'_>) {
        batch.tables.assign(&self.tables);
        batch.indices.assign(&self.indices);
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Axis;

    use super::super::sensitivity::{Sensitivity, damped, random_moments};
    use super::*;

    const COLUMNS: usize = 150;

    fn weights(rows: usize) -> Array2<f32> {
        Array2::from_shape_fn((rows, COLUMNS), |(row, column)| ((row * COLUMNS + column) as f32 * 0.7).sin())
    }

    /// Columns alternate between the parts.
    fn setting<'s>(sensitivity: &'s Sensitivity, part: &'s [usize], entries: usize) -> Setting<'s> {
        let parts = part.iter().max().map_or(1, |last| last + 1);
        Setting { sensitivity, part, parts, group_rows: 4, entries }
    }

    fn nearest(table: &[f32], value: f32) -> usize {
        let distance = |entry: usize| (table[entry] - value).abs();
        (0..table.len()).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap()
    }

    /// e H eᵀ, summed over all rows.
    fn cost(batch: &Batch<'_>, moments: &Array2<f32>) -> f64 {
        let Setting { part, parts, group_rows, .. } = batch.setting;
        let errors = Array2::from_shape_fn(batch.weights.raw_dim(), |(row, column)| {
            let index = usize::from(batch.indices[[row, column]]);
            batch.weights[[row, column]] - batch.tables[[row / group_rows * parts + part[column], index]]
        });
        f64::from((errors.dot(moments) * errors).sum())
    }

    #[test]
    fn errors_that_make_up_for_each_other_cost_less_than_the_nearest_entries() {
        let moments = random_moments(COLUMNS, 400);
        let sensitivity = Sensitivity::new(&moments, None, 0.01);
        let moments = damped(&moments, &sensitivity.order, 0.01);
        let cost = |batch: &Batch<'_>| cost(batch, &moments);
        let mut improved = false;
        for (parts, entries) in [(1, 4), (1, 16), (2, 16)] {
            let part: Vec<usize> = (0..COLUMNS).map(|column| column % parts).collect();
            let setting = setting(&sensitivity, &part, entries);
            let mut plain = Batch::new(setting, weights(8), &mut TableMaker::new());
            for ((row, column), index) in plain.indices.indexed_iter_mut() {
                let table = plain.tables.row(row / 4 * parts + part[column]);
                *index = nearest(table.as_slice().unwrap(), plain.weights[[row, column]]) as u8;
            }
            let mut fed_back = Batch::new(setting, weights(8), &mut TableMaker::new());
            let told: f64 = fed_back.feed_back().1.iter().sum();
            assert!((told / cost(&fed_back) - 1.0).abs() < 1e-3, "the costs it tells are e H e");
            let refitted = calibrated(setting, weights(8), &mut TableMaker::new());
            assert!(told < 0.5 * cost(&plain), "{told} {}", cost(&plain));
            assert!(cost(&refitted) < 1.00001 * told, "{} {told}", cost(&refitted));
            improved |= cost(&refitted) < 0.99 * told;
            assert!(refitted.tables.rows().into_iter().all(|table| table.iter().is_sorted()));
        }
        assert!(improved, "tables made anew are the better ones now and then");
    }

    #[test]
    fn what_comes_of_a_group_does_not_depend_on_its_batch() {
        let sensitivity = Sensitivity::new(&random_moments(COLUMNS, 400), None, 0.01);
        let part = [0; COLUMNS];
        let setting = setting(&sensitivity, &part, 16);
        let both = calibrated(setting, weights(8), &mut TableMaker::new());
        for group in 0..2 {
            let rows = both.rows_of(group);
            let alone = weights(8).slice_axis(Axis(0), rows).to_owned();
            let alone = calibrated(setting, alone, &mut TableMaker::new());
            assert_eq!(alone.indices, both.indices.slice_axis(Axis(0), rows));
            assert_eq!(alone.tables, both.tables.slice_axis(Axis(0), both.tables_of(group)));
        }
    }
}
