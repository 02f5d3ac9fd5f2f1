//! fp16 values and how much each weighs.

use half::f16;

/// Ranks there are: one for each pattern of 16 bits.
pub(super) const RANKS: usize = 1 << 16;

/// Distinct finite values, ascending, with the total weight of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Histogram {
    /// The values; -0 counts as 0.
    pub(crate) values: Vec<f32>,
    /// Their weights, all positive.
    pub(crate) weights: Vec<f64>,
}

/// Collects histograms, one after the other, in the same memory.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Weight of each rank so far.
    bins: Vec<f64>,
    histogram: Histogram,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Collector { bins: vec![0.0; RANKS], histogram: Histogram::default() }
    }

    /// Adds a value, finite, with a weight of 0 or more.
    pub(crate) fn add(&mut self, value: f16, weight: f64) {
        self.bins[usize::from(rank(value))] += weight;
    }

    /// The histogram of what was added; the next one begins empty. Values that weigh nothing are left out.
    pub(crate) fn finish(&mut self) -> &Histogram {
        let histogram = &mut self.histogram;
        histogram.values.clear();
        histogram.weights.clear();
        for (rank, weight) in (0..=u16::MAX).zip(&mut self.bins) {
            if *weight > 0.0 {
                histogram.values.push(value_of(rank).to_f32());
                histogram.weights.push(std::mem::take(weight));
            }
        }
        histogram
    }
}

/// Position of a value in the ascending order of all fp16 values; both zeros share one.
pub(super) fn rank(value: f16) -> u16 {
    let bits = if value == f16::ZERO { 0 } else { value.to_bits() };
    if bits & 0x8000 == 0 { bits | 0x8000 } else { !bits }
}

pub(super) fn value_of(rank: u16) -> f16 {
    f16::from_bits(if rank & 0x8000 != 0 { rank & 0x7fff } else { !rank })
}

#[cfg(test)]
impl Histogram {
    pub(crate) fn of(pairs: impl IntoIterator<Item = (f32, f64)>) -> Self {
        let mut collector = Collector::new();
        pairs.into_iter().for_each(|(value, weight)| collector.add(f16::from_f32(value), weight));
        collector.finish().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_sorted_with_zeros_merged() {
        let values = [1.0, -0.0, 0.0, -3.5, 1.0, 65504.0, -65504.0];
        let histogram = Histogram::of(values.map(|value| (value, 1.0)));
        assert_eq!(histogram.values, [-65504.0, -3.5, 0.0, 1.0, 65504.0]);
        assert_eq!(histogram.weights, [1.0, 1.0, 2.0, 2.0, 1.0]);
    }

    #[test]
    fn a_collector_begins_again_when_a_histogram_is_taken() {
        let mut collector = Collector::new();
        collector.add(f16::ONE, 1.0);
        assert_eq!(collector.finish().values, [1.0]);
        collector.add(f16::NEG_ONE, 0.0);
        assert_eq!(*collector.finish(), Histogram::default());
    }

    #[test]
    fn rank_and_value_are_inverse() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            if bits != 0x8000 {
                assert_eq!(value_of(rank(value)).to_bits(), bits);
            }
        }
    }
}
