//! Rotary position embeddings: the frequencies of an attention kind, and the cosines and sines they turn by.
//!
//! Angles are f32 products of f32 frequencies, as in transformers: at position 30 000 the rounding of the product is
//! part of what a model was trained with.

use crate::config::{RopeConfig, RopeKind};

/// The d/2 frequencies of one attention kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    inv_freq: Vec<f32>,
}

impl Rope {
    /// Frequencies for heads of width `head_dim`, which is even.
    pub fn new(config: &RopeConfig, head_dim: usize) -> Rope {
        assert!(head_dim.is_multiple_of(2), "a head of width {head_dim} has no pairs");
        let frequency = |pair: usize| {
            let exponent = (2 * pair) as f32 / head_dim as f32;
            1.0 / config.theta.powf(f64::from(exponent)) as f32
        };
        let angles = head_dim / 2;
        let inv_freq = match config.kind {
            RopeKind::Default => (0..angles).map(frequency).collect(),
            RopeKind::Proportional { partial_factor, factor } => {
                let turning = (partial_factor * head_dim as f64 / 2.0) as usize;
                let scaled = |pair| if pair < turning { frequency(pair) / factor as f32 } else { 0.0 };
                (0..angles).map(scaled).collect()
            }
        };
        Rope { inv_freq }
    }

    /// The d/2 frequencies, in radians per position.
    pub fn inv_freq(&self) -> &[f32] {
        &self.inv_freq
    }

    /// Writes the cosines and sines of `position`: d values each, the second half repeating the first.
    ///
    /// # Panics
    /// If `cos` or `sin` is not d long.
    pub fn fill(&self, position: usize, cos: &mut [f32], sin: &mut [f32]) {
        let half = self.inv_freq.len();
        assert_eq!((cos.len(), sin.len()), (2 * half, 2 * half), "cosines and sines of one position");
        for (pair, &frequency) in self.inv_freq.iter().enumerate() {
            let angle = f64::from(position as f32 * frequency);
            (cos[pair], sin[pair]) = (angle.cos() as f32, angle.sin() as f32);
        }
        cos.copy_within(..half, half);
        sin.copy_within(..half, half);
    }

    /// Cosines and sines of `count` positions from `start` on, `(count, d)` each.
    pub fn tables(&self, start: usize, count: usize) -> RopeTables {
        let width = 2 * self.inv_freq.len();
        let mut tables = RopeTables { cos: vec![0.0; count * width], sin: vec![0.0; count * width] };
        let rows = tables.cos.chunks_exact_mut(width).zip(tables.sin.chunks_exact_mut(width));
        for (offset, (cos, sin)) in rows.enumerate() {
            self.fill(start + offset, cos, sin);
        }
        tables
    }
}

/// Cosines and sines of consecutive positions, `(positions, d)` each, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeTables {
    /// Cosines.
    pub cos: Vec<f32>,
    /// Sines.
    pub sin: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: RopeConfig =
        RopeConfig { theta: 1e6, kind: RopeKind::Proportional { partial_factor: 0.5, factor: 2.0 } };

    #[test]
    fn default_frequencies_fall_geometrically_from_one() {
        let rope = Rope::new(&RopeConfig { theta: 1e4, kind: RopeKind::Default }, 8);
        assert_eq!(rope.inv_freq(), [1.0, 0.1, 0.01, 0.001]);
    }

    #[test]
    fn proportional_frequencies_keep_the_spacing_of_the_whole_head_and_end_in_zeros() {
        let whole = Rope::new(&RopeConfig { theta: 1e6, kind: RopeKind::Default }, 12);
        let rope = Rope::new(&FULL, 12);
        let halved: Vec<f32> = whole.inv_freq()[..3].iter().map(|frequency| frequency / 2.0).collect();
        assert_eq!(rope.inv_freq()[..3], halved);
        assert_eq!(rope.inv_freq()[3..], [0.0; 3]);
    }

    #[test]
    fn an_odd_number_of_turning_channels_rounds_down() {
        // 0.5 * 6 / 2 = 1.5
        assert_eq!(Rope::new(&FULL, 6).inv_freq(), [0.5, 0.0, 0.0]);
    }

    /// The cosines are torch's, of f32 angles.
    #[test]
    fn far_positions_keep_the_rounding_of_f32_angles() {
        let far = Rope::new(&RopeConfig { theta: 1e6, kind: RopeKind::Default }, 64).tables(30_000, 1);
        let torch = [-0.5964295, -0.9076381, -0.9558939, -0.99998736, 0.91549766, -0.6745027];
        for (cos, torch) in far.cos.iter().zip(torch) {
            assert!((cos - torch).abs() <= f32::EPSILON, "{cos} {torch}");
        }
    }

    #[test]
    fn tables_repeat_their_first_half_and_start_where_told() {
        let rope = Rope::new(&RopeConfig { theta: 1e4, kind: RopeKind::Default }, 4);
        let tables = rope.tables(7, 2);
        assert_eq!(tables.cos[..2], tables.cos[2..4]);
        assert_eq!(tables.cos[4], 8f32.cos());
        assert_eq!(tables.sin[1], (7.0 * 0.01f32).sin());
    }
}
