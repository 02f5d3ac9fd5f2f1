//! Rotary embeddings' cosines and sines at a pass's positions.

use half::f16;
use lone_bundle::Rope;

use crate::RunError;
use crate::buffer::Buffer;

/// The tables of one rotary embedding for one shape of pass, `(d, S)` each; row i and row i + d/2 are the same.
#[derive(Debug)]
pub(crate) struct Rotation {
    rope: usize,
    cos: Buffer,
    sin: Buffer,
    /// Position of the first column; `None` until the first pass.
    position: Option<usize>,
}

impl Rotation {
    /// Tables for S = `tokens` of the rotary embedding of index `rope`.
    pub(crate) fn new(rope: usize, frequencies: &Rope, tokens: usize) -> Result<Self, RunError> {
        let elements = 2 * frequencies.inv_freq.len() * tokens;
        Ok(Rotation { rope, cos: Buffer::zeroed(elements)?, sin: Buffer::zeroed(elements)?, position: None })
    }

    pub(crate) fn rope(&self) -> usize {
        self.rope
    }

    pub(crate) fn cos(&self) -> &Buffer {
        &self.cos
    }

    pub(crate) fn sin(&self) -> &Buffer {
        &self.sin
    }

    /// Fills the tables for positions from `position` on. The angle is an f32 product, as in transformers.
    pub(crate) fn move_to(&mut self, position: usize, frequencies: &Rope) {
        if self.position.replace(position) == Some(position) {
            return;
        }
        let half = self.cos.len() / 2;
        let tokens = half / frequencies.inv_freq.len().max(1);
        for (pair, frequency) in frequencies.inv_freq.iter().enumerate() {
            for token in 0..tokens {
                let angle = (position + token) as f32 * frequency;
                let (sin, cos) = f64::from(angle).sin_cos();
                let at = pair * tokens + token;
                for at in [at, at + half] {
                    self.cos[at] = f16::from_f32(cos as f32);
                    self.sin[at] = f16::from_f32(sin as f32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_holds_the_angles_of_its_position() {
        let rope = Rope { inv_freq: vec![1.0, 0.0] };
        let mut rotation = Rotation::new(0, &rope, 3).unwrap();
        rotation.move_to(2, &rope);
        let rounded = |angles: [f32; 3], of: fn(f32) -> f32| angles.map(|angle| f16::from_f32(of(angle)));
        let (turning, still) = ([2.0, 3.0, 4.0], [0.0; 3]);
        for (half, table) in [(0, rotation.cos()), (6, rotation.cos())] {
            assert_eq!(table[half..half + 3], rounded(turning, f32::cos));
            assert_eq!(table[half + 3..half + 6], rounded(still, f32::cos));
        }
        assert_eq!(rotation.sin()[6..9], rounded(turning, f32::sin));
        assert_eq!(rotation.sin()[9..12], rounded(still, f32::sin));
    }
}
