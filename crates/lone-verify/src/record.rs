//! What a model made of some tokens: hidden states and logits, to be compared with another's.

mod file;
mod transformers;

use std::path::PathBuf;

use lone_bundle::ModelFacts;
use lone_lfm::{Checkpoint, Reference, ReferenceError, Stage};

use crate::Watch;
pub use transformers::{Transformers, TransformersError};

/// A run, written down. Every table has a row for each of `positions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What was read, from position 0 on.
    pub tokens: Vec<u32>,
    /// The positions that were written down, ascending; at least one.
    pub positions: Vec<usize>,
    /// Hidden states, in the order they come about; those that were not seen are absent.
    pub states: Vec<State>,
    /// What follows each position, `(positions, V)`.
    pub logits: Vec<f32>,
}

/// The hidden states at one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Where in the network.
    pub stage: Stage,
    /// `(positions, D)`.
    pub rows: Vec<f32>,
}

/// A record that cannot be had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RecordError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not a safetensors file: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{}: `{tensor}`: expected {expected}, found {found}", path.display())]
    Tensor { path: PathBuf, tensor: String, expected: String, found: String },
    #[error("the record was made with another model: expected {expected}, found {found}")]
    OtherModel { expected: String, found: String },
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error("cancelled")]
    Cancelled,
}

impl Record {
    /// What the checkpoint itself makes of `tokens`, of which there is at least one, in f32.
    ///
    /// # Errors
    /// [`RecordError::Reference`] for a token the model does not have; [`RecordError::Cancelled`].
    pub fn of_checkpoint(
        checkpoint: &Checkpoint,
        tokens: &[u32],
        watch: &dyn Watch,
    ) -> Result<Self, RecordError> {
        let reference = Reference::new(checkpoint);
        let mut x = reference.embed(tokens)?;
        let mut states = vec![State { stage: Stage::Embeddings, rows: x.clone() }];
        for layer in 0..checkpoint.config().layers.len() {
            if watch.is_cancelled() {
                return Err(RecordError::Cancelled);
            }
            reference.layer(layer, &mut x);
            states.push(State { stage: Stage::Layer(layer), rows: x.clone() });
        }
        reference.final_norm(&mut x);
        let mut logits = Vec::with_capacity(tokens.len() * checkpoint.config().vocab_size);
        reference.logits(&x, |_, row| logits.extend_from_slice(row));
        states.push(State { stage: Stage::Final, rows: x });
        Ok(Record { tokens: tokens.into(), positions: (0..tokens.len()).collect(), states, logits })
    }

    /// V.
    pub fn vocab_size(&self) -> usize {
        self.logits.len() / self.positions.len()
    }

    /// The logits of row number `row`, `(V)`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn logits_of(&self, row: usize) -> &[f32] {
        let vocab_size = self.vocab_size();
        &self.logits[row * vocab_size..][..vocab_size]
    }

    /// The hidden states at `stage`, if they were seen.
    pub fn state(&self, stage: Stage) -> Option<&[f32]> {
        self.states.iter().find(|state| state.stage == stage).map(|state| &state.rows[..])
    }

    /// Refuses a record of a model with other dimensions.
    ///
    /// # Errors
    /// [`RecordError::OtherModel`].
    pub fn check(&self, facts: &ModelFacts) -> Result<(), RecordError> {
        let differ = |what: &str, expected: usize, found: usize| {
            let (expected, found) = (format!("{what} {expected}"), format!("{what} {found}"));
            if expected == found { Ok(()) } else { Err(RecordError::OtherModel { expected, found }) }
        };
        differ("vocabulary", facts.vocab_size, self.vocab_size())?;
        let widths = self.states.iter().map(|state| state.rows.len() / self.positions.len());
        widths.into_iter().try_for_each(|width| differ("hidden size", facts.hidden_size, width))
    }
}
