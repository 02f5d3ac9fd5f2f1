//! How large and how small the values of programs get, against what fp16 and the Neural Engine hold.

mod uses;
mod watch;

use half::f16;
use serde::Serialize;

pub use watch::RangeWatch;

/// The largest fp16 number.
const FP16_MAX: f32 = 65_504.0;
/// From here on a product of matrices is infinite on the Neural Engine.
const PRODUCT_LIMIT: f32 = 32_768.0;
/// The smallest normal fp16 number: 2^-14. The matrix unit of some engines takes anything below it for zero.
const SMALLEST_NORMAL: f32 = 1.0 / 16_384.0;
/// A value is close to its limit from this share of it on.
const CLOSE: f32 = 0.75;
/// What fp16 arithmetic loses anyway, relative to a value: half a step, 2^-11.
const ROUNDING: f64 = 1.0 / 2048.0;

/// The range of every value of some functions, in the order of their programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Ranges {
    values: Vec<ValueRange>,
}

/// The range of one value, over every run of its function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueRange {
    /// The package it is in.
    pub package: String,
    /// The function it is in.
    pub function: String,
    /// Its name there.
    pub value: String,
    /// The operation that makes it.
    pub op: &'static str,
    /// What it must stay below: 2^15 for products of matrices, else fp16's largest number. Absent where infinity does no
    /// harm: in what a gate divides by.
    pub limit: Option<f32>,
    /// Whether a matrix unit makes or reads it, so that its subnormal numbers may count as zero.
    pub in_product: bool,
    /// Whether only a softmax reads it, so that elements below zero are not looked at: they may be as low as they like.
    pub only_weighs: bool,
    /// Largest magnitude of a finite element.
    pub largest: f32,
    /// Smallest magnitude that is not zero; absent where all are.
    pub smallest: Option<f32>,
    /// How many elements were infinite.
    pub infinite: u64,
    /// How many elements were not a number.
    pub nan: u64,
    /// What taking subnormal numbers for zero would change, relative to the value's norm; of the run where that is most.
    pub flushed: f64,
}

/// What may become of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It reaches its limit.
    Overflow,
    /// It comes within a quarter of its limit.
    NearOverflow,
    /// More of it is subnormal than rounding loses anyway.
    Subnormal,
}

impl Ranges {
    /// Every value.
    pub fn values(&self) -> &[ValueRange] {
        &self.values
    }

    /// The value that comes closest to its limit.
    pub fn largest(&self) -> Option<&ValueRange> {
        self.values.iter().max_by(|a, b| a.reach().total_cmp(&b.reach()))
    }

    /// The values at risk, and by what.
    pub fn at_risk(&self) -> impl Iterator<Item = (&ValueRange, Risk)> {
        self.values.iter().filter_map(|value| Some((value, value.risk()?)))
    }
}

impl ValueRange {
    fn new(package: &str, function: &str, value: &str, op: &'static str) -> Self {
        ValueRange {
            package: package.to_owned(),
            function: function.to_owned(),
            value: value.to_owned(),
            op,
            limit: Some(FP16_MAX),
            in_product: false,
            only_weighs: false,
            largest: 0.0,
            smallest: None,
            infinite: 0,
            nan: 0,
            flushed: 0.0,
        }
    }

    /// The largest magnitude as a share of the limit; infinite where an element is what it must not be.
    pub fn reach(&self) -> f32 {
        match self.limit {
            _ if self.nan > 0 => f32::INFINITY,
            None => 0.0,
            Some(_) if self.infinite > 0 => f32::INFINITY,
            Some(limit) => self.largest / limit,
        }
    }

    /// What may become of it, the worst first.
    pub fn risk(&self) -> Option<Risk> {
        match self.reach() {
            1.0.. => Some(Risk::Overflow),
            CLOSE.. => Some(Risk::NearOverflow),
            _ if self.in_product && self.flushed > ROUNDING => Some(Risk::Subnormal),
            _ => None,
        }
    }

    /// Takes in the elements of one run.
    fn widen(&mut self, elements: &[f16]) {
        let (mut all, mut subnormal) = (0f64, 0f64);
        for element in elements.iter().filter(|&&element| !(self.only_weighs && element < f16::ZERO)) {
            let magnitude = element.to_f32().abs();
            if !magnitude.is_finite() {
                self.nan += u64::from(magnitude.is_nan());
                self.infinite += u64::from(magnitude.is_infinite());
                continue;
            }
            self.largest = self.largest.max(magnitude);
            if magnitude > 0.0 {
                self.smallest = Some(self.smallest.map_or(magnitude, |smallest| smallest.min(magnitude)));
            }
            let square = f64::from(magnitude) * f64::from(magnitude);
            all += square;
            if magnitude < SMALLEST_NORMAL {
                subnormal += square;
            }
        }
        if all > 0.0 {
            self.flushed = self.flushed.max((subnormal / all).sqrt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(limit: f32, elements: &[f32]) -> ValueRange {
        let mut range =
            ValueRange { limit: Some(limit), in_product: true, ..ValueRange::new("p", "f", "v", "conv") };
        range.widen(&elements.iter().map(|&element| f16::from_f32(element)).collect::<Vec<_>>());
        range
    }

    #[test]
    fn a_range_spans_every_run() {
        let mut range = range(FP16_MAX, &[-3.0, 0.0, 0.5]);
        range.widen(&[f16::from_f32(-8.0), f16::ZERO]);
        assert_eq!((range.largest, range.smallest, range.flushed), (8.0, Some(0.5), 0.0));
        assert_eq!(range.risk(), None);
    }

    #[test]
    fn a_value_is_at_risk_near_its_own_limit() {
        assert_eq!(range(FP16_MAX, &[40_000.0]).risk(), None);
        assert_eq!(range(PRODUCT_LIMIT, &[24_544.0]).risk(), None);
        assert_eq!(range(PRODUCT_LIMIT, &[-24_576.0]).risk(), Some(Risk::NearOverflow));
        assert_eq!(range(PRODUCT_LIMIT, &[32_768.0]).risk(), Some(Risk::Overflow));
        assert_eq!(range(FP16_MAX, &[1.0, f32::INFINITY]).risk(), Some(Risk::Overflow));
        assert_eq!(range(FP16_MAX, &[f32::NAN]).risk(), Some(Risk::Overflow));
        let divisor = |element| ValueRange { limit: None, ..range(FP16_MAX, &[element]) };
        assert_eq!([f32::INFINITY, f32::NAN].map(|x| divisor(x).risk()), [None, Some(Risk::Overflow)]);
    }

    #[test]
    fn subnormal_elements_matter_where_they_are_much_of_a_value_that_a_matrix_unit_sees() {
        let small = 2f32.powi(-15);
        assert_eq!(range(FP16_MAX, &[1.0, small]).risk(), None);
        assert_eq!(range(FP16_MAX, &[0.01, small]).risk(), Some(Risk::Subnormal));
        assert_eq!(range(FP16_MAX, &[small, 0.0]).flushed, 1.0);
        assert_eq!(range(FP16_MAX, &[2.0 * small]).flushed, 0.0);
        let elementwise = ValueRange { in_product: false, ..range(FP16_MAX, &[small]) };
        assert_eq!(elementwise.risk(), None);
    }

    #[test]
    fn how_far_below_zero_masked_scores_are_does_not_matter() {
        let mut scores = ValueRange { only_weighs: true, ..range(FP16_MAX, &[]) };
        scores.widen(&[3.0, -40_000.0, f32::NEG_INFINITY].map(f16::from_f32));
        assert_eq!((scores.largest, scores.risk()), (3.0, None));
        scores.widen(&[f16::INFINITY]);
        assert_eq!(scores.risk(), Some(Risk::Overflow));
    }

    #[test]
    fn zeros_have_no_smallest_magnitude() {
        let zeros = range(FP16_MAX, &[0.0, 0.0]);
        assert_eq!((zeros.largest, zeros.smallest, zeros.flushed, zeros.risk()), (0.0, None, 0.0, None));
    }
}
