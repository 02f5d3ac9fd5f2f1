//! Rounding to the numbers that fp16 has, and to coarser and finer ones.

use half::f16;

/// The least normal number of fp16.
pub(crate) const LEAST_NORMAL: f32 = 1.0 / 16_384.0;
/// Bits of an f32's fraction that an fp16's does not have.
const SPARE_BITS: u32 = 13;
/// Likewise of an f64's.
const SPARE_BITS_OF_DOUBLE: u32 = 42;

/// The nearest fp16 value, halves to even.
pub(crate) fn nearest(value: f64) -> f32 {
    f16::from_f64(value).to_f32()
}

/// The nearest fp16 value of a magnitude below 2^15, halves to even, in operations that vectorise.
#[inline(always)]
pub(crate) fn nearest_small(value: f32) -> f32 {
    // Below the normal numbers the grid is 2^-24, which is that of an f32 between 1/2 and 1.
    if value.abs() < LEAST_NORMAL { (value + 0.75) - 0.75 } else { nearest_normal(value) }
}

/// The same of a magnitude that is normal in fp16.
#[inline(always)]
pub(crate) fn nearest_normal(value: f32) -> f32 {
    const BELOW_HALF: u32 = (1 << (SPARE_BITS - 1)) - 1;
    let bits = value.to_bits();
    let odd = bits >> SPARE_BITS & 1;
    f32::from_bits((bits + BELOW_HALF + odd) >> SPARE_BITS << SPARE_BITS)
}

/// The fp16 value next to a finite `value`, or the value itself, on the side of zero.
pub(crate) fn toward_zero(value: f64) -> f64 {
    if value.abs() < f64::from(LEAST_NORMAL) {
        const SUBNORMAL: f64 = 1.0 / 16_777_216.0;
        (value / SUBNORMAL).trunc() * SUBNORMAL
    } else {
        f64::from_bits(value.to_bits() >> SPARE_BITS_OF_DOUBLE << SPARE_BITS_OF_DOUBLE)
    }
}

/// `a + b` of which each has first been rounded to what an adder of twelve bits keeps beside the larger of them.
#[inline(always)]
pub(crate) fn add_in_twelve_bits(a: f32, b: f32) -> f32 {
    const EXPONENT: u32 = 0x7f80_0000;
    /// Added to 2^e, this makes a number whose last bit is worth 2^(e-11).
    const SHIFT: f32 = 6144.0;
    let larger = if a.abs() > b.abs() { a.abs() } else { b.abs() };
    let magic = f32::from_bits(larger.to_bits() & EXPONENT) * SHIFT;
    ((a + magic) - magic) + ((b + magic) - magic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_adder_of_twelve_bits_drops_what_lies_below_them() {
        assert_eq!(add_in_twelve_bits(3000.0, 1.0), 3001.0, "which fp16 does not have");
        assert_eq!(add_in_twelve_bits(4096.0, 1.0), 4096.0);
        assert_eq!(add_in_twelve_bits(-1.0, 4098.0), 4098.0);
        assert_eq!(add_in_twelve_bits(30_000.0, -5.0), 29_992.0);
        assert_eq!(add_in_twelve_bits(0.0, 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn small_values_round_as_half_does(value in -32_000.0f32..32_000.0, exponent in 0i32..40) {
            let value = value * (-exponent as f32).exp2();
            prop_assert_eq!(nearest_small(value), f16::from_f32(value).to_f32());
        }

        #[test]
        fn rounding_toward_zero_is_never_farther_than_the_next_half(value in -60_000.0f64..60_000.0, exponent in 0i32..40) {
            let value = value * f64::from(-exponent).exp2();
            let (found, nearest) = (toward_zero(value), f64::from(nearest(value)));
            prop_assert!(found.abs() <= value.abs());
            prop_assert_eq!(f64::from(super::nearest(found)), found, "a half");
            prop_assert!(nearest.abs() > value.abs() || found == nearest);
        }
    }
}
