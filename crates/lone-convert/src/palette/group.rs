//! One table and the indices into it, for the rows that share it.

use half::f16;

use super::histogram::{Collector, RANKS, rank};
use super::kmeans::Solver;

/// Makes groups, one after the other, in the same memory.
#[derive(Debug)]
pub(super) struct GroupMaker {
    collector: Collector,
    solver: Solver,
    /// By rank: the index of the nearest entry, for the values of the last group.
    nearest: Vec<u8>,
}

/// A table and the indices into it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// As many as the format says, ascending; the last stands for those that were not needed.
    pub(super) entries: Vec<f16>,
    /// One for each value.
    pub(super) indices: Vec<u8>,
}

impl GroupMaker {
    pub(super) fn new() -> Self {
        GroupMaker { collector: Collector::new(), solver: Solver::default(), nearest: vec![0; RANKS] }
    }

    /// The table of `entries` entries that is nearest to `values` in squares, and for each value its nearest entry.
    pub(super) fn plain(&mut self, values: &[f16], entries: usize) -> Group {
        values.iter().for_each(|&value| self.collector.add(value, 1.0));
        let histogram = self.collector.finish();
        let mut table = self.solver.palette(histogram, entries).entries;
        let mut at = 0;
        for &value in &histogram.values {
            let distance = |index: usize| (table[index].to_f32() - value).abs();
            while at + 1 < table.len() && distance(at + 1) < distance(at) {
                at += 1;
            }
            self.nearest[usize::from(rank(f16::from_f32(value)))] = at as u8;
        }
        let indices = values.iter().map(|&value| self.nearest[usize::from(rank(value))]).collect();
        table.resize(entries, table[table.len() - 1]);
        Group { entries: table, indices }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_gets_the_entry_next_to_it() {
        let values = [0.0, 0.1, 7.0, -3.0, 6.5, -0.0, 0.2].map(f16::from_f32);
        let group = GroupMaker::new().plain(&values, 4);
        assert_eq!(group.entries.len(), 4);
        assert_eq!(group.indices, [1, 1, 3, 0, 2, 1, 1]);
        assert_eq!(group.entries[0], values[3]);
    }

    #[test]
    fn a_table_larger_than_needed_repeats_its_last_entry() {
        let values = [1.0, 2.0].map(f16::from_f32);
        let group = GroupMaker::new().plain(&values, 16);
        assert_eq!(group.entries[..2], values);
        assert!(group.entries[2..].iter().all(|&entry| entry == values[1]));
    }

    #[test]
    fn values_behind_means_that_have_become_the_same_get_the_entry_next_to_them() {
        let few = (0..1000).map(|i| i as f32 / 1000.0 - 0.5).chain((0..200).map(|i| 1.5 + i as f32 / 100.0));
        let many = (0..60_000).map(|i| [1.0, 1.001][i % 2]);
        let values: Vec<f16> = few.chain(many).map(f16::from_f32).collect();
        let group = GroupMaker::new().plain(&values, 64);
        let distance = |value: f16, entry: f16| (value.to_f32() - entry.to_f32()).abs();
        for (&value, &index) in values.iter().zip(&group.indices) {
            let given = distance(value, group.entries[usize::from(index)]);
            assert!(group.entries.iter().all(|&entry| given <= distance(value, entry)), "{value} at {given}");
        }
    }

    #[test]
    fn memory_of_the_group_before_does_not_show() {
        let [first, second] = [[1.0, 2.0, 3.0], [3.0, 5.0, 1.0]].map(|values| values.map(f16::from_f32));
        let mut used = GroupMaker::new();
        used.plain(&first, 2);
        assert_eq!(used.plain(&second, 2), GroupMaker::new().plain(&second, 2));
    }
}
