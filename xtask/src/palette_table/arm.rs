//! The ways to store weights that are compared.

use std::fmt;

use lone_convert::{Calibration, ConvertOptions, WeightPrecision};

/// A way to store weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arm {
    /// Width of the indices.
    pub precision: WeightPrecision,
    /// How tables come about.
    pub fit: Fit,
}

/// How tables come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// There are none.
    None,
    /// One for a whole matrix, by k-means of its weights.
    Plain,
    /// One for 16 rows, by k-means of their weights.
    Grouped,
    /// One for 16 rows, fitted to text.
    Calibrated,
    /// One for 8 rows, fitted to text.
    Finer,
}

impl Arm {
    /// fp16, and every width of index in every way.
    pub fn all() -> Vec<Arm> {
        let mut arms = vec![Arm { precision: WeightPrecision::Fp16, fit: Fit::None }];
        for precision in [WeightPrecision::Lut8, WeightPrecision::Lut6, WeightPrecision::Lut4] {
            arms.extend(
                [Fit::Plain, Fit::Grouped, Fit::Calibrated, Fit::Finer].map(|fit| Arm { precision, fit }),
            );
        }
        arms
    }

    /// Options to convert with, for conversations of up to 512 tokens.
    pub fn options(self) -> ConvertOptions {
        ConvertOptions {
            precision: self.precision,
            group: match self.fit {
                Fit::None => None,
                Fit::Plain => Some(0),
                Fit::Grouped | Fit::Calibrated => Some(16),
                Fit::Finer => Some(8),
            },
            calibrate: matches!(self.fit, Fit::Calibrated | Fit::Finer).then_some(Calibration::Builtin),
            ctx: vec![512],
            prefill: vec![32],
            spec_drafts: Some(31),
            ..ConvertOptions::default()
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fit::None => "",
            Fit::Plain => "`--group 0`",
            Fit::Grouped => "`--group 16`",
            Fit::Calibrated => "`--group 16 --calibrate builtin`",
            Fit::Finer => "`--group 8 --calibrate builtin`",
        })
    }
}
