//! Measurements of one thing.

use serde::Serialize;

/// The middle and the ends of some measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// That of `samples`; `None` if there are none.
    pub(super) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 };
        Some(Spread { median, min, max })
    }

    /// The spread of a function that falls or rises throughout, such as from seconds to rates.
    pub(super) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (of(self.min), of(self.max));
        Spread { median: of(self.median), min: a.min(b), max: a.max(b) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0, 2.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0, 3.0]), Some(Spread { median: 3.0, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn the_slowest_is_the_lowest_rate() {
        let seconds = Spread { median: 2.0, min: 1.0, max: 4.0 };
        assert_eq!(seconds.map(|seconds| 4.0 / seconds), Spread { median: 2.0, min: 1.0, max: 4.0 });
    }
}
