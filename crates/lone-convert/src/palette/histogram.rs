//! fp16 values and how much each weighs.

use half::f16;

/// Distinct finite values, ascending, with the total weight of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// The values; -0 counts as 0.
    pub values: Vec<f32>,
    /// Their weights, all positive.
    pub weights: Vec<f64>,
}

impl Histogram {
    /// Collects `(value, weight)` pairs; those that weigh nothing are left out.
    pub fn new(pairs: impl IntoIterator<Item = (f16, f64)>) -> Self {
        let mut bins = vec![0.0; 1 << 16];
        for (value, weight) in pairs {
            bins[rank(value) as usize] += weight;
        }
        let mut histogram = Histogram::default();
        for (rank, weight) in bins.into_iter().enumerate() {
            if weight > 0.0 {
                histogram.values.push(value_of(rank as u16).to_f32());
                histogram.weights.push(weight);
            }
        }
        histogram
    }
}

/// Position of a value in the ascending order of all fp16 values; both zeros share one.
fn rank(value: f16) -> u16 {
    let bits = if value == f16::ZERO { 0 } else { value.to_bits() };
    if bits & 0x8000 == 0 { bits | 0x8000 } else { !bits }
}

fn value_of(rank: u16) -> f16 {
    f16::from_bits(if rank & 0x8000 != 0 { rank & 0x7fff } else { !rank })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_sorted_with_zeros_merged() {
        let values = [1.0, -0.0, 0.0, -3.5, 1.0, 65504.0, -65504.0].map(f16::from_f32);
        let histogram = Histogram::new(values.into_iter().map(|value| (value, 1.0)));
        assert_eq!(histogram.values, [-65504.0, -3.5, 0.0, 1.0, 65504.0]);
        assert_eq!(histogram.weights, [1.0, 1.0, 2.0, 2.0, 1.0]);
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
