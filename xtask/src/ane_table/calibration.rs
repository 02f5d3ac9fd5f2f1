//! Where the assumption behind the simulator's `wide_reduction` comes from.
//!
//! An accumulator that is an fp16 from some term on, rounding to the nearest or toward zero, sums the wide projection
//! of the table: which of them loses what the engine was measured to lose?

use std::fmt;

use half::f16;

use super::cosine;
use super::rules::{WIDE, wide_projection};

/// Terms of the sum after which the accumulator is an fp16.
const STARTS: [usize; 5] = [0, 2048, 3072, 4096, 5120];
/// Terms that reach the accumulator as one.
const TILE: usize = 4;

/// A way to round to fp16.
type Rounding = fn(f64) -> f16;

/// The cosine with f64 for every start.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// Start, cosine when rounding to the nearest, cosine when rounding toward zero.
    pub cosines: Vec<(usize, f64, f64)>,
}

impl Calibration {
    pub(super) fn compute() -> Self {
        let case = wide_projection();
        let (x, (_, weight)) = (&case.inputs[0], &case.weights[0]);
        let tiles: Vec<Vec<f64>> = weight.chunks_exact(WIDE).map(|row| tile_sums(row, x)).collect();
        let of = |start: usize, round: Rounding| {
            let sums: Vec<f64> = tiles.iter().map(|tiles| sum(tiles, start, round)).collect();
            cosine(&sums, &case.exact)
        };
        let cosines = STARTS.map(|start| (start, of(start, f16::from_f64), of(start, toward_zero)));
        Calibration { cosines: cosines.into() }
    }
}

/// The exact sums of the tiles of one row.
fn tile_sums(row: &[f16], x: &[f16]) -> Vec<f64> {
    let tile = |(w, x): (&[f16], &[f16])| w.iter().zip(x).map(|(w, x)| w.to_f64() * x.to_f64()).sum();
    row.chunks(TILE).zip(x.chunks(TILE)).map(tile).collect()
}

fn sum(tiles: &[f64], start: usize, round: Rounding) -> f64 {
    let (wide, narrow) = tiles.split_at(start / TILE);
    narrow.iter().fold(wide.iter().sum(), |sum: f64, tile| round(sum + tile).to_f64())
}

fn toward_zero(value: f64) -> f16 {
    let nearest = f16::from_f64(value);
    if nearest.to_f64().abs() > value.abs() { f16::from_bits(nearest.to_bits() - 1) } else { nearest }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| the accumulator is an fp16 | rounding to the nearest | toward zero |")?;
        writeln!(f, "|---|---|---|")?;
        for (start, nearest, toward_zero) in &self.cosines {
            writeln!(f, "| after {start} terms | {nearest:.5} | {toward_zero:.5} |")?;
        }
        writeln!(f, "\nmeasured on an M1: 0.9972. `wide_reduction` assumes 4096 terms, toward zero.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_toward_zero_gives_the_smaller_neighbour() {
        assert_eq!(toward_zero(2049.9).to_f32(), 2048.0);
        assert_eq!(toward_zero(-2051.0).to_f32(), -2050.0);
        assert_eq!(toward_zero(2048.0).to_f32(), 2048.0);
    }
}
