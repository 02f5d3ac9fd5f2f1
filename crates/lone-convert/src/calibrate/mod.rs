//! What the inputs of every matrix look like, found by running text through the model in f32.
//!
//! Layers are gone through in order, once: all sequences go through a layer before any goes through the next, so that
//! memory holds the moments of one layer.

mod moments;
mod palettizer;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lone_lfm::{Checkpoint, Reference, Tensor};

use crate::ConvertError;
use crate::palette::Sensitivity;
use crate::workers::Report;
use moments::second_moments;
pub(crate) use palettizer::Palettizer;
pub(crate) use text::sequences;

/// What is added to the second moment of each input, whose mean is 1: inputs that the text does not excite still
/// count for something. A tenth of it loses as little on average, and more where it loses most.
const DAMPING: f32 = 0.1;

/// Text that palettes are fitted to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Calibration {
    /// Conversations and prose that come with lone.
    Builtin,
    /// A file of plain text; or, if it is called so, a JSON list of texts and of conversations, which are objects with
    /// `messages` and perhaps `tools`.
    File(PathBuf),
}

impl Calibration {
    /// As it is called on the command line.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Calibration::Builtin => Cow::Borrowed("builtin"),
            Calibration::File(path) => path.to_string_lossy(),
        }
    }
}

/// A model on its way through the calibration text.
#[derive(Debug)]
pub(crate) struct Calibrator<'c> {
    checkpoint: &'c Checkpoint,
    reference: Reference<'c>,
    /// The residual stream of each sequence in front of layer `next`.
    streams: Vec<Vec<f32>>,
    next: usize,
    /// By the names of the tensors that read them: inputs of the last layer gone through.
    found: BTreeMap<String, Arc<Sensitivity>>,
}

/// What some matrices read: the inputs (T,C) of all sequences, one after the other.
struct Inputs {
    tensors: Vec<String>,
    columns: usize,
    rows: Vec<f32>,
}

impl<'c> Calibrator<'c> {
    /// In front of the first layer, with the tokens of some text.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if a token is outside the vocabulary.
    pub(crate) fn new(checkpoint: &'c Checkpoint, sequences: &[Vec<u32>]) -> Result<Self, ConvertError> {
        let reference = Reference::new(checkpoint);
        let embedded = sequences.iter().map(|tokens| reference.embed(tokens));
        let streams = embedded.collect::<Result<_, _>>().map_err(ConvertError::calibration)?;
        Ok(Calibrator { checkpoint, reference, streams, next: 0, found: BTreeMap::new() })
    }

    /// The layer of the matrix that was asked for last; of the head, as many as there are.
    pub(crate) fn layer(&self) -> usize {
        self.next.saturating_sub(1)
    }

    /// Of the inputs of a matrix, which belongs to the same layer as that asked for before or a later one.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if the inputs are beyond f32, [`ConvertError::Cancelled`].
    ///
    /// # Panics
    /// If the layer was left behind.
    pub(crate) fn sensitivity(
        &mut self,
        tensor: &Tensor<'_>,
        report: &Report<'_>,
    ) -> Result<Arc<Sensitivity>, ConvertError> {
        loop {
            if let Some(found) = self.found.get(tensor.name()) {
                return Ok(found.clone());
            }
            self.found.clear();
            for inputs in self.next_inputs(report)? {
                let moments = second_moments(inputs.rows, inputs.columns);
                if !moments.iter().all(|moment| moment.is_finite()) {
                    let name = &inputs.tensors[0];
                    return Err(ConvertError::calibration(format_args!("what `{name}` reads is beyond f32")));
                }
                let sensitivity = Arc::new(Sensitivity::new(&moments, DAMPING));
                self.found.extend(inputs.tensors.into_iter().map(|name| (name, sensitivity.clone())));
            }
        }
    }

    /// Takes all sequences through the next layer, or behind the last one to the head.
    fn next_inputs(&mut self, report: &Report<'_>) -> Result<Vec<Inputs>, ConvertError> {
        let layers = self.checkpoint.config().layers.len();
        assert!(self.next <= layers, "matrices are asked for in the order of the model");
        let mut all: Vec<Inputs> = Vec::new();
        for stream in &mut self.streams {
            report.advance(0)?;
            let mut number = 0;
            let mut watch = |tensors: &[Tensor<'_>], x: &[f32]| {
                if all.len() == number {
                    let names = tensors.iter().map(|tensor| tensor.name().to_owned()).collect();
                    all.push(Inputs { tensors: names, columns: tensors[0].row_len(), rows: Vec::new() });
                }
                all[number].rows.extend_from_slice(x);
                number += 1;
            };
            if self.next < layers {
                self.reference.layer(self.next, stream, &mut watch);
            } else {
                self.reference.final_norm(stream);
                watch(&[self.checkpoint.head()], stream);
            }
        }
        self.next += 1;
        Ok(all)
    }
}
