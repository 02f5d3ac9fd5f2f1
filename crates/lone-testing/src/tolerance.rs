//! How near a result must come, by kind of operation and type: the only place where such numbers stand.

use lone_mil::DType;

/// What limits an operation's exactness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: values are moved, compared or counted.
    Exact,
    /// One rounding of an exact result.
    Rounded,
    /// A sum of products or of many values.
    Summed,
    /// A function that hardware approximates, or a chain of several roundings.
    Approximated,
    /// An activation that hardware may keep in a table.
    Tabled,
}

/// `|found - expected| <= absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Allowed whatever the value.
    pub absolute: f64,
    /// Allowed as a share of the expected value.
    pub relative: f64,
}

/// The tolerances of one backend, for the fp16 and fp32 results of each [`Kind`] but the exact one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerances {
    /// Whose they are.
    pub name: &'static str,
    rounded: [Tolerance; 2],
    summed: [Tolerance; 2],
    approximated: [Tolerance; 2],
    tabled: [Tolerance; 2],
}

const fn within(absolute: f64, relative: f64) -> Tolerance {
    Tolerance { absolute, relative }
}

/// Half the distance of neighbouring fp16 values, relative to them: what one correct rounding costs.
const HALF_ULP: f64 = 1.0 / 2048.0;
/// The smallest positive fp16 value: below the normal numbers, roundings are of this absolute size.
const SUBNORMAL: f64 = 1.0 / 16_777_216.0;

impl Tolerances {
    /// The reference interpreter: f32 throughout, one rounding.
    pub const REFERENCE: Tolerances = Tolerances {
        name: "reference",
        rounded: [within(SUBNORMAL, HALF_ULP), within(1e-37, 1e-6)],
        summed: [within(1e-5, HALF_ULP * 1.01), within(1e-5, 1e-5)],
        approximated: [within(1e-6, HALF_ULP * 1.01), within(1e-6, 1e-5)],
        tabled: [within(1e-6, HALF_ULP * 1.01), within(1e-6, 1e-5)],
    };

    /// lone's CPU engine: f32 accumulation in another order, polynomial functions, and one rounding a step.
    pub const CPU: Tolerances = Tolerances {
        name: "cpu",
        rounded: [within(SUBNORMAL, HALF_ULP * 1.01), within(1e-37, 2e-6)],
        summed: [within(2e-5, HALF_ULP * 1.1), within(2e-5, 2e-5)],
        approximated: [within(2e-5, 2.0 * HALF_ULP), within(2e-6, 2e-5)],
        tabled: [within(2e-5, 2.0 * HALF_ULP), within(2e-6, 2e-5)],
    };

    /// The simulated Neural Engine: products and parts of sums rounded to about fp16, narrow sums, and activations made
    /// of 32 straight lines, of which silu's are the coarsest. It has no fp32.
    pub const ANE_SIM: Tolerances = Tolerances {
        name: "ane-sim",
        rounded: [within(SUBNORMAL, HALF_ULP * 1.01), within(0.0, 0.0)],
        summed: [within(2e-3, 2.0 * HALF_ULP), within(0.0, 0.0)],
        approximated: [within(1e-4, 2.0 * HALF_ULP), within(0.0, 0.0)],
        tabled: [within(1.5e-2, 2.0 * HALF_ULP), within(0.0, 0.0)],
    };

    /// Core ML, wherever it runs an operation: fp16 throughout, sums in an order of its own, subnormals that may be flushed,
    /// and the Neural Engine's activations. Set before anything was measured.
    pub const CORE_ML: Tolerances = Tolerances {
        name: "core-ml",
        rounded: [within(1024.0 * SUBNORMAL, 2.0 * HALF_ULP), within(1e-37, 2e-6)],
        summed: [within(4e-3, 4.0 * HALF_ULP), within(2e-5, 2e-5)],
        approximated: [within(1e-3, 4.0 * HALF_ULP), within(1e-5, 1e-4)],
        tabled: [within(1.5e-2, 4.0 * HALF_ULP), within(1e-5, 1e-4)],
    };

    /// The tolerance of a result of `dtype`.
    pub fn of(&self, kind: Kind, dtype: DType) -> Tolerance {
        let [half, single] = match kind {
            Kind::Exact => [within(0.0, 0.0); 2],
            Kind::Rounded => self.rounded,
            Kind::Summed => self.summed,
            Kind::Approximated => self.approximated,
            Kind::Tabled => self.tabled,
        };
        if dtype == DType::F16 { half } else { single }
    }
}

impl Tolerance {
    /// Whether `found` will do for `expected`; infinities must agree, and NaN is near NaN alone.
    pub fn accepts(&self, found: f64, expected: f64) -> bool {
        if expected.is_nan() {
            return found.is_nan();
        }
        found == expected || (found - expected).abs() <= self.absolute + self.relative * expected.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_infinity_is_near_infinity() {
        let wide = within(1.0, 1.0);
        assert!(wide.accepts(f64::INFINITY, f64::INFINITY));
        assert!(!wide.accepts(f64::NEG_INFINITY, 0.0));
        assert!(!wide.accepts(f64::NAN, 0.0));
        assert!(wide.accepts(f64::NAN, f64::NAN) && !wide.accepts(0.0, f64::NAN));
    }

    #[test]
    fn an_exact_kind_tolerates_nothing() {
        let exact = Tolerances::CPU.of(Kind::Exact, DType::F16);
        assert!(exact.accepts(1.0, 1.0) && !exact.accepts(1.0 + 1e-9, 1.0));
    }
}
