//! What substitutes cost the logits, over some text.

use lone_lfm::{Checkpoint, Reference, Substitute};

use crate::ConvertError;

/// Tokens measured on: each measurement is a pass over the model.
const MOST_TOKENS: usize = 256;

/// Sequences of text on their way through a model, and where they lead.
pub(super) struct Probe<'c> {
    checkpoint: &'c Checkpoint,
    reference: Reference<'c>,
    /// The residual stream of each sequence in front of the first layer.
    embedded: Vec<Vec<f32>>,
    /// The same in front of `layer`.
    streams: Vec<Vec<f32>>,
    layer: usize,
    /// The checkpoint's logits, row after row.
    expected: Vec<f32>,
}

impl<'c> Probe<'c> {
    /// In front of the first layer, with no more than [`MOST_TOKENS`] of `sequences`.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if a token is outside the vocabulary.
    pub(super) fn new(checkpoint: &'c Checkpoint, sequences: &[Vec<u32>]) -> Result<Self, ConvertError> {
        let reference = Reference::new(checkpoint);
        let (mut embedded, mut left) = (Vec::new(), MOST_TOKENS);
        for tokens in sequences {
            let tokens = &tokens[..tokens.len().min(left)];
            if tokens.is_empty() {
                break;
            }
            left -= tokens.len();
            let rows = reference.embed(tokens).map_err(ConvertError::calibration)?;
            embedded.push(rows);
        }
        let streams = embedded.clone();
        let mut probe = Probe { checkpoint, reference, embedded, streams, layer: 0, expected: Vec::new() };
        let mut expected = Vec::new();
        probe.each_logits(&reference, |logits| expected.extend_from_slice(logits));
        probe.expected = expected;
        Ok(probe)
    }

    /// Moves on to a later layer: substitutes for matrices of earlier ones have no effect from now on.
    pub(super) fn advance_to(&mut self, layer: usize) {
        for layer in self.layer..layer {
            for stream in &mut self.streams {
                self.reference.layer(layer, stream);
            }
        }
        self.layer = self.layer.max(layer);
    }

    /// Back in front of the first layer.
    pub(super) fn rewind(&mut self) {
        self.streams.clone_from(&self.embedded);
        self.layer = 0;
    }

    /// Mean of 1 - cosine of the logits.
    pub(super) fn loss(&self, substitute: &dyn Substitute) -> f64 {
        let width = self.checkpoint.config().vocab_size;
        let mut expected = self.expected.chunks_exact(width);
        let (mut sum, mut count) = (0.0, 0.0);
        self.each_logits(&self.reference.with_substitute(substitute), |logits| {
            let expected = expected.next().expect("there are as many rows every time");
            sum += 1.0 - cosine(logits, expected);
            count += 1.0;
        });
        sum / count
    }

    fn each_logits(&self, reference: &Reference<'_>, mut each: impl FnMut(&[f32])) {
        for stream in &self.streams {
            let mut x = stream.clone();
            for layer in self.layer..self.checkpoint.config().layers.len() {
                reference.layer(layer, &mut x);
            }
            reference.final_norm(&mut x);
            reference.logits(&x, |_, logits| each(logits));
        }
    }
}

/// Of two rows, neither of which is all zeros unless both are.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms > 0.0 { dot(a, b) / norms } else { 1.0 }
}
