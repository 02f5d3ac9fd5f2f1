//! What fitting palettes to text must buy on a small model.

use std::path::Path;

use lone_convert::WeightPrecision;
use xtask::palette_table::{Arm, Fit, measure};

/// Every so manieth question: the test is to be short, the task goes through all of them.
const STEP: usize = 20;

#[test]
fn fitted_palettes_lose_less_than_half_of_what_plain_ones_lose_and_wider_ones_still_less() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny-lfm3");
    for (precision, most) in [(WeightPrecision::Lut4, 0.5), (WeightPrecision::Lut6, 0.4)] {
        let arms = [Fit::Plain, Fit::Calibrated].map(|fit| Arm { precision, fit });
        let report = measure(&dir, STEP, &arms).unwrap();
        let share = report.rows[1].mean / report.plain(precision).unwrap();
        assert!(share < most, "{precision}: {share} of what plain palettes lose");
    }
}
