//! What the inputs of every matrix look like, found by running text through the model in f32.
//!
//! ```text
//! layer i, checkpoint's   x ─▶ x   streams behind the checkpoint's layers
//! layer i, checkpoint's   x̂ ─▶     streams behind palettes: what matrices will read
//!     … its matrices are palettized, for x̂ to give what x would …
//! layer i, palettized     x̂ ─▶ x̂
//! ```
//! Layers are gone through in order: all sequences go through a layer before any goes through the next, so that memory
//! holds the moments of one layer.

mod layer;
mod moments;
mod palettizer;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lone_lfm::{Checkpoint, Reference, Tensor};
use ndarray::Array2;

use crate::ConvertError;
use crate::palette::{Matrix, Palettized, Sensitivity};
use crate::workers::Report;
use layer::ExpandedLayer;
use moments::{drift, second_moments, share_alike};
pub(crate) use palettizer::Palettizer;
pub(crate) use text::sequences;

/// What is added to the second moment of each input, whose mean is 1: inputs that the text does not excite still
/// count for something.
const DAMPING: f32 = 0.03;

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

/// What comes in front of the matrices that inputs are wanted of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    /// The checkpoint's layers.
    Checkpoint,
    /// Layers with the palettes that were made of them.
    Palettes,
}

/// A model on its way through the calibration text.
#[derive(Debug)]
pub(crate) struct Calibrator<'c> {
    checkpoint: &'c Checkpoint,
    /// The residual stream of each sequence in front of layer `next`.
    streams: Vec<Vec<f32>>,
    /// The same behind palettes, in front of the last layer gone through; if those are followed.
    palettized: Option<Vec<Vec<f32>>>,
    /// Of the last layer gone through, what its palettes stand for.
    expanded: ExpandedLayer,
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

impl Inputs {
    fn into_array(self) -> Array2<f32> {
        let rows = self.rows.len() / self.columns;
        Array2::from_shape_vec((rows, self.columns), self.rows).expect("inputs are whole rows")
    }
}

impl<'c> Calibrator<'c> {
    /// In front of the first layer, with the tokens of some text.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if a token is outside the vocabulary.
    pub(crate) fn new(
        checkpoint: &'c Checkpoint,
        sequences: &[Vec<u32>],
        following: Following,
    ) -> Result<Self, ConvertError> {
        let reference = Reference::new(checkpoint);
        let embedded = sequences.iter().map(|tokens| reference.embed(tokens));
        let streams: Vec<_> = embedded.collect::<Result<_, _>>().map_err(ConvertError::calibration)?;
        Ok(Calibrator {
            checkpoint,
            palettized: (following == Following::Palettes).then(|| streams.clone()),
            streams,
            expanded: ExpandedLayer::default(),
            next: 0,
            found: BTreeMap::new(),
        })
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
            self.advance(report)?;
        }
    }

    /// Takes note of the palettes of a matrix that was asked for last.
    pub(crate) fn follow(&mut self, matrix: &Matrix<'_>, parts: &[Palettized]) {
        // Nothing comes behind the head.
        if self.palettized.is_some() && self.next <= self.checkpoint.config().layers.len() {
            self.expanded.insert(matrix, parts);
        }
    }

    /// Goes on to the next layer, or behind the last one to the head, and finds out what its matrices read.
    fn advance(&mut self, report: &Report<'_>) -> Result<(), ConvertError> {
        let layer = self.next;
        assert!(
            layer <= self.checkpoint.config().layers.len(),
            "matrices are asked for in the order of the model"
        );
        self.found.clear();
        self.next += 1;
        let reference = Reference::new(self.checkpoint);
        let wanted = inputs(self.checkpoint, &reference, layer, &mut self.streams, report)?;
        let read = match &mut self.palettized {
            None => None,
            Some(palettized) => {
                if let Some(before) = layer.checked_sub(1) {
                    inputs(
                        self.checkpoint,
                        &reference.with_substitute(&self.expanded),
                        before,
                        palettized,
                        report,
                    )?;
                    self.expanded = ExpandedLayer::default();
                }
                Some(inputs(self.checkpoint, &reference, layer, &mut palettized.clone(), report)?)
            }
        };
        let mut read = read.map(Vec::into_iter);
        for wanted in wanted {
            let tensors = wanted.tensors.clone();
            let read = read.as_mut().and_then(Iterator::next).map(Inputs::into_array);
            let sensitivity = Arc::new(sensitivity(wanted.into_array(), read, &tensors[0])?);
            report.advance(0)?;
            self.found.extend(tensors.into_iter().map(|name| (name, sensitivity.clone())));
        }
        Ok(())
    }
}

/// Of matrices that read `read`, or without palettes in front `wanted`, and should give what they give for `wanted`.
fn sensitivity(
    mut wanted: Array2<f32>,
    read: Option<Array2<f32>>,
    tensor: &str,
) -> Result<Sensitivity, ConvertError> {
    let shares = share_alike(&wanted);
    wanted *= &shares;
    let (moments, drift) = match read {
        None => (second_moments(&wanted), None),
        Some(mut read) => {
            read *= &shares;
            (second_moments(&read), Some(drift(wanted, &read)))
        }
    };
    if !moments.iter().chain(drift.iter().flatten()).all(|moment| moment.is_finite()) {
        return Err(ConvertError::calibration(format_args!("what `{tensor}` reads is beyond f32")));
    }
    Ok(Sensitivity::new(&moments, drift.as_ref(), DAMPING))
}

/// Takes all sequences through a layer, or behind the last one to the head, and gives what its matrices read.
fn inputs(
    checkpoint: &Checkpoint,
    reference: &Reference<'_>,
    layer: usize,
    streams: &mut [Vec<f32>],
    report: &Report<'_>,
) -> Result<Vec<Inputs>, ConvertError> {
    let mut all: Vec<Inputs> = Vec::new();
    for stream in streams {
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
        if layer < checkpoint.config().layers.len() {
            reference.layer(layer, stream, &mut watch);
        } else {
            reference.final_norm(stream);
            watch(&[checkpoint.head()], stream);
        }
    }
    Ok(all)
}
