//! Groups palettized so that the product with real inputs, not the weights, comes out right.
//!
//! Rows are independent but for the tables they share. A batch is some groups at once, so that matrix products have
//! rows enough; what comes of a group does not depend on its batch.

use std::ops::Range;

use half::f16;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Axis, Slice};

use super::histogram::Collector;
use super::kmeans::Solver;
use super::lanes::{self, LANES, Midpoints};
use super::sensitivity::Sensitivity;

/// Columns settled before what they leave is carried to all others in one product, and to the next of their own.
const BLOCKS: [usize; 2] = [256, 64];

/// What all batches of a matrix have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'s> {
    pub(super) sensitivity: &'s Sensitivity,
    /// For each place, the part of the matrix that its column belongs to.
    pub(super) part: &'s [usize],
    pub(super) parts: usize,
    pub(super) group_rows: usize,
    pub(super) entries: usize,
}

/// Rows of W, columns in the order of the sensitivity, and what they are palettized to.
#[derive(Debug)]
pub(super) struct Batch<'s> {
    pub(super) setting: Setting<'s>,
    /// (R,C)
    pub(super) weights: Array2<f32>,
    /// (tables, entries): one for each group and in it for each part, ascending, of fp16 values. The last entry
    /// stands for those that were not needed.
    pub(super) tables: Array2<f32>,
    /// (R,C), into the row's group's tables.
    pub(super) indices: Array2<u8>,
    /// (R,C), the weights less the entries.
    pub(super) errors: Array2<f32>,
}

/// Memory for tables being made.
#[derive(Debug)]
pub(super) struct TableMaker {
    collector: Collector,
    solver: Solver,
}

impl TableMaker {
    pub(super) fn new() -> Self {
        TableMaker { collector: Collector::new(), solver: Solver::default() }
    }
}

impl<'s> Batch<'s> {
    /// `weights` (R,C), with tables that suit them as they are and no indices yet.
    pub(super) fn new(setting: Setting<'s>, weights: Array2<f32>, maker: &mut TableMaker) -> Self {
        let tables = weights.nrows() / setting.group_rows * setting.parts;
        let mut batch = Batch {
            setting,
            tables: Array2::zeros((tables, setting.entries)),
            indices: Array2::zeros(weights.raw_dim()),
            errors: Array2::zeros(weights.raw_dim()),
            weights,
        };
        let aims = batch.weights.clone();
        batch.make_tables(&aims, maker);
        batch
    }

    pub(super) fn groups(&self) -> usize {
        self.weights.nrows() / self.setting.group_rows
    }

    /// The tables of a group.
    pub(super) fn tables_of(&self, group: usize) -> Slice {
        Slice::from(group * self.setting.parts..(group + 1) * self.setting.parts)
    }

    /// The rows of a group.
    pub(super) fn rows_of(&self, group: usize) -> Slice {
        Slice::from(group * self.setting.group_rows..(group + 1) * self.setting.group_rows)
    }

    /// The best tables for values `aims` (R,C), each weighing as much as its column's pivot.
    pub(super) fn make_tables(&mut self, aims: &Array2<f32>, maker: &mut TableMaker) {
        let Setting { sensitivity, part: part_of, parts, group_rows, entries } = self.setting;
        for (group, rows) in aims.axis_chunks_iter(Axis(0), group_rows).enumerate() {
            for part in 0..parts {
                for row in rows.rows() {
                    for ((&aim, &pivot), &of) in row.iter().zip(&sensitivity.pivots).zip(part_of) {
                        if of == part {
                            maker.collector.add(coarse(aim), f64::from(pivot));
                        }
                    }
                }
                let found = maker.solver.palette(maker.collector.finish(), entries).entries;
                for (entry, slot) in self.tables.row_mut(group * parts + part).iter_mut().enumerate() {
                    *slot = found[entry.min(found.len() - 1)].to_f32();
                }
            }
        }
    }

    /// Settles column after column, each aimed to make up for the errors of those before. Gives the aims (R,C) and
    /// the cost of each group, e H eᵀ.
    pub(super) fn feed_back(&mut self) -> (Array2<f32>, Vec<f64>) {
        let mut aims = self.weights.clone();
        let mut costs = vec![0.0; self.groups()];
        let midpoints = Midpoints::new(&self.tables);
        for outer in blocks(0..aims.ncols(), BLOCKS[0]) {
            self.carry(0..outer.start, outer.clone(), &mut aims);
            for inner in blocks(outer.clone(), BLOCKS[1]) {
                self.carry(outer.start..inner.start, inner.clone(), &mut aims);
                for (group, cost) in costs.iter_mut().enumerate() {
                    let rows = group * self.setting.group_rows..(group + 1) * self.setting.group_rows;
                    for rows in blocks(rows, LANES) {
                        *cost += self.settle(group, rows, inner.clone(), &midpoints, &mut aims);
                    }
                }
            }
        }
        (aims, costs)
    }

    /// Makes columns `to` aim at making up for the errors of columns `from`.
    fn carry(&self, from: Range<usize>, to: Range<usize>, aims: &mut Array2<f32>) {
        let (from, to) = (Slice::from(from), Slice::from(to));
        let factor = self.setting.sensitivity.factor.slice_axis(Axis(0), from);
        let factor = factor.slice_axis_move(Axis(1), to);
        let errors = self.errors.slice_axis(Axis(1), from);
        general_mat_mul(1.0, &errors, &factor, 1.0, &mut aims.slice_axis_mut(Axis(1), to));
    }

    /// Settles the columns `block` of up to [`LANES`] rows of a group, and gives what they cost.
    fn settle(
        &mut self,
        group: usize,
        rows: Range<usize>,
        block: Range<usize>,
        midpoints: &Midpoints,
        aims: &mut Array2<f32>,
    ) -> f64 {
        let Setting { sensitivity, part, parts, .. } = self.setting;
        let mut targets = lanes::load(aims, &rows, &block);
        let weights = lanes::load(&self.weights, &rows, &block);
        let mut errors = vec![[0.0; LANES]; block.len()];
        let mut indices = vec![[0; LANES]; block.len()];
        let mut cost = 0.0;
        for (place, column) in block.clone().enumerate() {
            let table = group * parts + part[column];
            let entries = self.tables.row(table).to_slice().expect("rows lie in one piece");
            indices[place] = midpoints.nearest(table, &targets[place]);
            for lane in 0..rows.len() {
                let entry = entries[usize::from(indices[place][lane])];
                errors[place][lane] = weights[place][lane] - entry;
                let missed = f64::from(targets[place][lane] - entry);
                cost += f64::from(sensitivity.pivots[column]) * missed * missed;
            }
            let carry = sensitivity.factor.row(column);
            let carry = &carry.to_slice().expect("rows lie in one piece")[column + 1..block.end];
            lanes::add_multiples(&mut targets[place + 1..], &errors[place], carry);
        }
        lanes::store(&targets, aims, &rows, &block);
        lanes::store(&errors, &mut self.errors, &rows, &block);
        lanes::store(&indices, &mut self.indices, &rows, &block);
        cost
    }
}

/// Runs of `length` that make up `range`, the last perhaps shorter.
fn blocks(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length).map(move |start| start..end.min(start + length))
}

/// A finite fp16 near a value, of bf16's mantissa: the fewer values there are, the sooner the best table is found.
fn coarse(value: f32) -> f16 {
    // Carries run from the mantissa into the exponent, as they should, and short of infinity.
    let bits = finite(value).to_bits();
    let rounded = f16::from_bits((bits + 4) & !7);
    if rounded.is_finite() { rounded } else { f16::from_bits(bits & !7) }
}

/// The nearest finite fp16.
pub(super) fn finite(value: f32) -> f16 {
    f16::from_f32(value.clamp(f16::MIN.to_f32(), f16::MAX.to_f32()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_values_are_near_and_finite() {
        for value in [0.0f32, 1.0, -1.0039, 0.1, -3.3e-5, 1e-7, 65_504.0, -1e9] {
            let (coarse, exact) = (coarse(value).to_f32(), finite(value).to_f32());
            assert!(coarse.is_finite(), "{value}");
            assert!(
                (coarse - exact).abs() <= exact.abs() / 256.0 + 4.0 * 2f32.powi(-24),
                "{value} is {coarse}"
            );
            assert_eq!(finite(coarse).to_bits() & 7, 0);
        }
    }
}
