//! The model, in f32 and in the paper's order: what every faster implementation is compared with.
//!
//! A whole sequence goes through at once, layer by layer. Weights are decoded from the mapping a block of rows at a
//! time, so memory holds activations and one such block per thread. Every hidden state can be observed.
//!
//! Activations are `(T, C)`, row-major: one row of C channels for each token.

mod attention;
mod linear;
mod norm;
mod passage;
mod short_conv;

use std::fmt::Debug;
use std::ops::Range;

use crate::checkpoint::{LayerTensors, Operator};
use crate::{Checkpoint, Config, LayerKind, Tensor};
use linear::Linear;
pub use passage::Passage;

/// A place in the network whose hidden state can be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The embeddings of the tokens.
    Embeddings,
    /// The residual stream behind this layer.
    Layer(usize),
    /// The last layer's output after the final norm: what the head reads.
    Final,
}

/// Input that the model cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// A token that the embedding table has no row for.
    #[error("token {token} at position {position} is outside the vocabulary of {vocab_size}")]
    TokenOutsideVocabulary {
        /// The token.
        token: u32,
        /// Its position.
        position: usize,
        /// V.
        vocab_size: usize,
    },
}

/// Rows of logits made at a time; at V = 128 000 they take 32 MB.
const LOGIT_ROWS: usize = 64;

/// Stands in for matrices of a checkpoint.
pub trait Substitute: Debug + Sync {
    /// Writes rows of what stands in for `matrix` to `out`, (rows, C), and says so; or leaves the checkpoint's.
    fn read_rows_f32(&self, matrix: &Tensor<'_>, rows: Range<usize>, out: &mut [f32]) -> bool;
}

/// The f32 forward pass over a checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    checkpoint: &'a Checkpoint,
    threads: usize,
    substitute: Option<&'a dyn Substitute>,
}

impl<'a> Reference<'a> {
    /// A forward pass that uses every core.
    pub fn new(checkpoint: &'a Checkpoint) -> Reference<'a> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Reference { checkpoint, threads, substitute: None }
    }

    /// The same with `threads` threads, at least one.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Reference<'a> {
        Reference { threads: threads.max(1), ..self }
    }

    /// The same with what `substitute` puts in the place of matrices of linear layers.
    #[must_use]
    pub fn with_substitute(self, substitute: &'a dyn Substitute) -> Reference<'a> {
        Reference { substitute: Some(substitute), ..self }
    }

    /// Runs `tokens` from position 0 on. `observe` sees every stage, `(T, D)`, in order; the result is that of
    /// [`Stage::Final`].
    ///
    /// # Errors
    /// [`ReferenceError::TokenOutsideVocabulary`].
    pub fn hidden(
        &self,
        tokens: &[u32],
        mut observe: impl FnMut(Stage, &[f32]),
    ) -> Result<Vec<f32>, ReferenceError> {
        let mut x = self.embed(tokens)?;
        observe(Stage::Embeddings, &x);
        for layer in 0..self.checkpoint.config().layers.len() {
            self.layer(layer, &mut x);
            observe(Stage::Layer(layer), &x);
        }
        self.final_norm(&mut x);
        observe(Stage::Final, &x);
        Ok(x)
    }

    /// Embeddings of `tokens`, `(T, D)`: where [`Reference::layer`] begins.
    ///
    /// # Errors
    /// [`ReferenceError::TokenOutsideVocabulary`].
    pub fn embed(&self, tokens: &[u32]) -> Result<Vec<f32>, ReferenceError> {
        let (table, width) = (self.checkpoint.embed(), self.checkpoint.config().hidden_size);
        let mut x = vec![0.0; tokens.len() * width];
        for (position, (&token, row)) in tokens.iter().zip(x.chunks_exact_mut(width)).enumerate() {
            let (index, vocab_size) = (token as usize, table.rows());
            if index >= vocab_size {
                return Err(ReferenceError::TokenOutsideVocabulary { token, position, vocab_size });
            }
            table.read_rows_f32(index..index + 1, row);
        }
        Ok(x)
    }

    /// Runs one layer on `x`, the residual stream `(T, D)` of a sequence from position 0 on.
    pub fn layer(&self, layer: usize, x: &mut [f32]) {
        let (block, lengths) = (self.block(layer), [x.len() / self.checkpoint.config().hidden_size]);
        let read = block.operator_input(x);
        let inside = block.operator(&read, &lengths);
        block.add_operator_output(x, &inside);
        let read = block.feed_forward_input(x);
        let inside = block.feed_forward(&read);
        block.add_feed_forward_output(x, &inside);
    }

    /// The final norm, which makes what the head reads of the last layer's output `(T, D)`.
    pub fn final_norm(&self, x: &mut [f32]) {
        norm::rms_norm(x, self.checkpoint.final_norm(), self.checkpoint.config().norm_eps);
    }

    /// Logits of rows of [`Stage::Final`], `(rows, D)`: `each` gets the number of the row and its V logits.
    ///
    /// # Panics
    /// If `hidden` is not made of whole rows.
    pub fn logits(&self, hidden: &[f32], mut each: impl FnMut(usize, &[f32])) {
        let config = self.checkpoint.config();
        assert!(hidden.len().is_multiple_of(config.hidden_size), "hidden states are rows of D");
        for (group, rows) in hidden.chunks(LOGIT_ROWS * config.hidden_size).enumerate() {
            let logits = self.linear().apply(rows, self.checkpoint.head(), None);
            for (row, logits) in logits.chunks_exact(config.vocab_size).enumerate() {
                each(group * LOGIT_ROWS + row, logits);
            }
        }
    }

    fn linear(&self) -> Linear<'a> {
        Linear { threads: self.threads, substitute: self.substitute }
    }

    fn block(&self, layer: usize) -> Block<'a> {
        let config = self.checkpoint.config();
        let tensors = self.checkpoint.layer(layer);
        Block { config, kind: config.layers[layer], tensors, linear: self.linear() }
    }
}

/// One layer, cut in front of the matrices: x is the residual stream `(T, D)` of some sequences, one after the other.
///
/// ```text
/// x ─▶ norm ─▶ operator ─▶ out_proj ─▶ + ─▶ norm ─▶ w1, w3, silu ─▶ w2 ─▶ + ─▶ x
/// ```
struct Block<'a> {
    config: &'a Config,
    kind: LayerKind,
    tensors: LayerTensors<Tensor<'a>>,
    linear: Linear<'a>,
}

impl Block<'_> {
    /// What the operator reads.
    fn operator_input(&self, x: &[f32]) -> Vec<f32> {
        self.normed(x, self.tensors.operator_norm)
    }

    /// What the operator's last matrix reads, of what its first ones read; `lengths` are those of the sequences.
    fn operator(&self, read: &[f32], lengths: &[usize]) -> Vec<f32> {
        match &self.tensors.operator {
            Operator::Conv(conv) => short_conv::forward(self.config, conv, self.linear, read, lengths),
            Operator::Attention(attention) => {
                attention::forward(self.config, self.kind, attention, self.linear, read, lengths)
            }
        }
    }

    /// Adds what that matrix makes of what it reads.
    fn add_operator_output(&self, x: &mut [f32], read: &[f32]) {
        let (matrix, bias) = match &self.tensors.operator {
            Operator::Conv(conv) => (conv.out_proj, conv.out_proj_bias),
            Operator::Attention(attention) => (attention.o_proj, None),
        };
        self.add(x, self.linear.apply(read, matrix, bias), self.tensors.post_operator_norm);
    }

    /// What w1 and w3 read.
    fn feed_forward_input(&self, x: &[f32]) -> Vec<f32> {
        self.normed(x, self.tensors.ffn_norm)
    }

    /// What w2 reads: `silu(w1(x)) * w3(x)`.
    fn feed_forward(&self, read: &[f32]) -> Vec<f32> {
        let mut gate = self.linear.apply(read, self.tensors.w1, None);
        let up = self.linear.apply(read, self.tensors.w3, None);
        gate.iter_mut().zip(&up).for_each(|(gate, up)| *gate = *gate * sigmoid(*gate) * up);
        gate
    }

    /// Adds what w2 makes of what it reads.
    fn add_feed_forward_output(&self, x: &mut [f32], read: &[f32]) {
        self.add(x, self.linear.apply(read, self.tensors.w2, None), self.tensors.post_ffn_norm);
    }

    fn normed(&self, x: &[f32], weight: Tensor<'_>) -> Vec<f32> {
        let mut y = x.to_vec();
        norm::rms_norm(&mut y, weight, self.config.norm_eps);
        y
    }

    /// `x += y`, or `x += norm(y)` with sandwich norms.
    fn add(&self, x: &mut [f32], mut y: Vec<f32>, post_norm: Option<Tensor<'_>>) {
        if let Some(weight) = post_norm {
            norm::rms_norm(&mut y, weight, self.config.norm_eps);
        }
        x.iter_mut().zip(&y).for_each(|(x, y)| *x += y);
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}
