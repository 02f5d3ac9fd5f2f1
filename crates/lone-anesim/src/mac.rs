//! The multiply-accumulate array: a sum of products as the engine takes it.
//!
//! ```text
//! x[0]*y[0] ─ fp16 ┐
//! x[1]*y[1] ─ fp16 ┤ one tile, added
//! x[2]*y[2] ─ fp16 ┤ in twelve bits  ──▶  wide accumulator ──▶ fp16 ──▶ + start
//! x[3]*y[3] ─ fp16 ┘
//! ```
//! The accumulator holds every sum of tiles exactly. [`Mac::careful`] is the definition, lane by lane;
//! [`quick`] computes the same in blocks wherever no part of the sum comes near the numbers that saturate.

use std::array::from_fn;
use std::iter::repeat;

use lone_mil::{Numerics, Reference};

use crate::Faults;
use crate::grid::{LEAST_NORMAL, add_in_twelve_bits, nearest, nearest_normal, nearest_small, toward_zero};

/// Lanes of a tile.
const TILE: usize = 4;
/// Lanes that are computed together.
const BLOCK: usize = 32;
/// Where sums saturate.
const SATURATION: f64 = 32_768.0;
/// The least magnitude that rounds to infinity in fp16.
const OVERFLOW: f64 = 65_520.0;
/// A sum of magnitudes up to which no part of the sum saturates, however it is rounded on the way.
const QUICK: f32 = 32_000.0;
/// Terms after which the accumulator is an fp16 that rounds toward zero. Together they give back the cosine that was
/// measured on a 6656-wide projection, which rounding to the nearest does not; docs/precision.md has the figures.
const WIDE: usize = 4096;

/// The array with some of its faults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mac {
    faults: Faults,
}

impl Mac {
    pub(crate) fn new(faults: Faults) -> Self {
        Mac { faults }
    }

    /// `start + sum of x[i] * y[i]`.
    pub(crate) fn dot(&self, x: &[f32], y: &[f32], start: f32) -> f32 {
        let Faults { tiled_sums, flushed_products, saturating_sums, wide_reduction, .. } = self.faults;
        if !(tiled_sums || flushed_products || saturating_sums || wide_reduction) {
            return Reference.dot(x, y, start);
        }
        let wide_from = if wide_reduction { WIDE } else { usize::MAX };
        let sum = match (tiled_sums, flushed_products) {
            (true, true) => quick::<true>(x, y, wide_from),
            (true, false) => quick::<false>(x, y, wide_from),
            (false, _) => None,
        };
        let sum = self.bounded(nearest(sum.unwrap_or_else(|| self.careful(x, y))).into());
        self.bounded(sum + f64::from(start)) as f32
    }

    /// The sum before it is rounded, from its definition.
    fn careful(&self, x: &[f32], y: &[f32]) -> f64 {
        let mut sum = 0.0;
        for (tile, (x, y)) in x.chunks(TILE).zip(y.chunks(TILE)).enumerate() {
            // Every tile has all its lanes; those that are left over are zero.
            let products = x.iter().zip(y).map(|(&x, &y)| self.product(x, y)).chain(repeat(0.0)).take(TILE);
            let tile_sum = products.reduce(|a, b| self.add_lanes(a, b)).expect("a tile has lanes");
            sum = self.bounded(sum + tile_sum);
            if self.faults.wide_reduction && tile * TILE >= WIDE {
                sum = toward_zero(sum);
            }
        }
        sum
    }

    fn product(&self, x: f32, y: f32) -> f64 {
        let product = f64::from(x) * f64::from(y);
        if self.faults.flushed_products && product.abs() < LEAST_NORMAL.into() {
            0.0
        } else if self.faults.tiled_sums {
            self.bounded(nearest(product).into())
        } else {
            self.bounded(product)
        }
    }

    fn add_lanes(&self, a: f64, b: f64) -> f64 {
        let sum = a + b;
        if !self.faults.tiled_sums || !sum.is_finite() {
            return self.bounded(sum);
        }
        let sum = self.bounded(add_in_twelve_bits(a as f32, b as f32).into());
        if sum.abs() >= OVERFLOW { f64::INFINITY.copysign(sum) } else { sum }
    }

    /// A part of a sum as the array can hold it.
    fn bounded(&self, sum: f64) -> f64 {
        if sum.is_nan() && self.faults.special_values {
            0.0
        } else if self.faults.saturating_sums && sum.abs() >= SATURATION {
            f64::INFINITY.copysign(sum)
        } else {
            sum
        }
    }
}

/// What [`Mac::careful`] gives with tiled sums for operands that are fp16 values; `None` if a part of the sum might
/// saturate, or is not finite.
fn quick<const FLUSHED: bool>(x: &[f32], y: &[f32], wide_from: usize) -> Option<f64> {
    let (x, x_beyond) = x.split_at(wide_from.min(x.len()));
    let (y, y_beyond) = y.split_at(x.len());
    let mut magnitudes = [0.0; TILE];
    // The accumulator is exact, so the order in which tiles reach it does not matter until it is narrow.
    let mut sums = [0.0; TILE];
    each_block(x, y, |x, y| {
        for tiles in tile_sums::<FLUSHED>(x, y, &mut magnitudes).as_chunks::<TILE>().0 {
            (0..TILE).for_each(|i| sums[i] += f64::from(tiles[i]));
        }
    });
    let mut sum = sums.iter().sum();
    each_block(x_beyond, y_beyond, |x, y| {
        for tile in tile_sums::<FLUSHED>(x, y, &mut magnitudes) {
            sum = toward_zero(sum + f64::from(tile));
        }
    });
    (magnitudes.iter().sum::<f32>() < QUICK).then_some(sum)
}

/// All of `x` and `y` in blocks, the last one filled up with zeros, which change no sum.
#[inline(always)]
fn each_block(x: &[f32], y: &[f32], mut f: impl FnMut(&[f32; BLOCK], &[f32; BLOCK])) {
    let ((x_blocks, x_rest), (y_blocks, y_rest)) = (x.as_chunks(), y.as_chunks());
    x_blocks.iter().zip(y_blocks).for_each(|(x, y)| f(x, y));
    if !x_rest.is_empty() {
        let filled = |rest: &[f32]| from_fn(|i| rest.get(i).copied().unwrap_or(0.0));
        f(&filled(x_rest), &filled(y_rest));
    }
}

/// The sums of a block's tiles; adds the magnitudes of its products to `magnitudes`.
// Loops over arrays, one thing a loop: this is what the compiler turns into vector instructions.
#[inline(always)]
fn tile_sums<const FLUSHED: bool>(
    x: &[f32; BLOCK],
    y: &[f32; BLOCK],
    magnitudes: &mut [f32; TILE],
) -> [f32; BLOCK / TILE] {
    let mut products = [0.0; BLOCK];
    for i in 0..BLOCK {
        let product = x[i] * y[i];
        products[i] = if !FLUSHED {
            nearest_small(product)
        } else if product.abs() < LEAST_NORMAL {
            0.0
        } else {
            nearest_normal(product)
        };
    }
    let tiles = products.as_chunks::<TILE>().0;
    for tile in tiles {
        (0..TILE).for_each(|i| magnitudes[i] += tile[i].abs());
    }
    let mut sums = [0.0; BLOCK / TILE];
    for (sum, &[a, b, c, d]) in sums.iter_mut().zip(tiles) {
        *sum = add_in_twelve_bits(add_in_twelve_bits(add_in_twelve_bits(a, b), c), d);
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f32]) -> f32 {
        Mac::new(Faults::M1).dot(values, &vec![1.0; values.len()], 0.0)
    }

    #[test]
    fn ones_beside_4096_are_lost_in_its_tile_and_only_there() {
        let values = [vec![4096.0], vec![1.0; 1024]].concat();
        assert_eq!(sum(&values), 5116.0);
    }

    #[test]
    fn sixteen_thousand_ones_are_summed_exactly_by_a_wide_accumulator() {
        let mac = Mac::new(Faults { wide_reduction: false, ..Faults::M1 });
        assert_eq!(mac.dot(&[1.0; 16_000], &[1.0; 16_000], 0.0), 16_000.0);
    }

    #[test]
    fn ones_survive_a_cancellation_below_4096_and_one_in_four_above_it() {
        for (big, survivors) in [
            (1024.0, 16.0),
            (3000.0, 16.0),
            (4090.0, 16.0),
            (4096.0, 4.0),
            (8000.0, 4.0),
            (16_000.0, 4.0),
            (30_000.0, 4.0),
        ] {
            for triple in [[big, -big, 1.0], [big, 1.0, -big]] {
                assert_eq!(sum(&triple.repeat(16)), survivors, "{triple:?}");
            }
        }
    }

    #[test]
    fn sums_saturate_at_two_to_the_fifteenth() {
        assert_eq!(sum(&[32_752.0]), 32_752.0);
        assert_eq!(sum(&[32_768.0]), f32::INFINITY);
        assert_eq!(sum(&[16_384.0, 0.0, 0.0, 0.0, 16_384.0]), f32::INFINITY);
        assert_eq!(sum(&[-20_000.0, -20_000.0]), f32::NEG_INFINITY);
        let exact = Mac::new(Faults { saturating_sums: false, ..Faults::M1 });
        assert_eq!(exact.dot(&[20_000.0; 2], &[1.0; 2], 0.0), 40_000.0);
    }

    #[test]
    fn a_part_that_saturates_is_not_brought_back() {
        assert_eq!(sum(&[20_000.0, 20_000.0, -20_000.0, 0.0]), f32::INFINITY);
        assert_eq!(sum(&[20_000.0, 0.0, 0.0, 0.0, 20_000.0, 0.0, 0.0, 0.0, -20_000.0]), f32::INFINITY);
    }

    #[test]
    fn products_that_are_subnormal_vanish_on_the_m1_alone() {
        let (small, one) = ([LEAST_NORMAL / 2.0; 8], [1.0; 8]);
        assert_eq!(Mac::new(Faults::M1).dot(&small, &one, 0.0), 0.0);
        assert_eq!(Mac::new(Faults::M5).dot(&small, &one, 0.0), 4.0 * LEAST_NORMAL);
        assert_eq!(Mac::new(Faults::M1).dot(&[LEAST_NORMAL], &[1.0], 0.0), LEAST_NORMAL);
        let scaled = Mac::new(Faults::M1).dot(&small, &[16.0; 8], 0.0);
        assert_eq!(scaled / 16.0, 4.0 * LEAST_NORMAL, "what weights are scaled for");
    }

    #[test]
    fn beyond_4096_terms_what_is_below_the_last_bit_of_an_fp16_is_lost() {
        let ones = |n: usize| sum(&vec![1.0; n]);
        assert_eq!(ones(4096), 4096.0);
        // Tiles of four are whole steps of the grid between 4096 and 8192; ones alone are not.
        assert_eq!((ones(4100), ones(4099)), (4100.0, 4096.0));
        assert_eq!(ones(16_000), 8192.0);
    }

    #[test]
    fn infinite_operands_do_not_make_a_nan() {
        let infinity = f32::INFINITY;
        let dot = |x: &[f32], y: &[f32]| Mac::new(Faults::M1).dot(x, y, 0.0);
        assert_eq!(dot(&[infinity, 2.0], &[0.0, 3.0]), 6.0);
        assert_eq!(dot(&[infinity, 2.0], &[-1.0, 3.0]), f32::NEG_INFINITY);
        assert_eq!(dot(&[infinity, infinity], &[1.0, -1.0]), 0.0);
    }

    #[test]
    fn lanes_that_are_left_over_are_zero() {
        // The sum of the last two products has 13 bits, of which adding a zero drops one.
        let x = [nearest(0.0005), 0.0, 0.0, 0.0, 1.5, 0.5 + 1.0 / 2048.0];
        let ones = [1.0; 6];
        let mac = Mac::new(Faults::M1);
        assert_eq!((mac.dot(&x, &ones, 0.0), nearest(mac.careful(&x, &ones))), (2.0, 2.0));
    }

    #[test]
    fn a_bias_is_added_to_the_rounded_sum() {
        let mac = Mac::new(Faults::M1);
        assert_eq!(mac.dot(&[2048.0, 0.0, 0.0, 0.0, 1.0], &[1.0; 5], 1.0), 2049.0);
        assert_eq!(mac.dot(&[32_752.0], &[1.0], 16.0), f32::INFINITY);
    }

    #[test]
    fn without_faults_sums_are_those_of_the_reference() {
        let values: Vec<f32> = (0..5000).map(|i| (i % 97) as f32 / 64.0).collect();
        assert_eq!(Mac::new(Faults::EXACT).dot(&values, &values, 1.0), Reference.dot(&values, &values, 1.0));
    }

    /// fp16 values of magnitudes from `2^low` to 2.
    fn halves(low: i32, len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
        let half = (-2.0f32..2.0, low..=0)
            .prop_map(|(value, exponent)| nearest((value * (exponent as f32).exp2()).into()));
        proptest::collection::vec(half, len)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn blocks_give_what_the_definition_gives(x in halves(-14, 0..300), y in halves(-8, 300..301), faults in 0..8u8) {
            let faults = Faults {
                tiled_sums: faults & 1 != 0,
                flushed_products: faults & 2 != 0,
                wide_reduction: faults & 4 != 0,
                ..Faults::M1
            };
            // Repeated, so that long rows reach the narrow accumulator.
            for times in [1, 20] {
                let (x, y) = (x.repeat(times), y[..x.len()].repeat(times));
                let mac = Mac::new(faults);
                prop_assert_eq!(mac.dot(&x, &y, 0.0), nearest(mac.careful(&x, &y)), "{} terms", x.len());
            }
        }
    }
}
