//! Sequences on their way through the model together, stopping wherever matrices read.
//!
//! Matrices are read once for all sequences, and whoever stops may put other matrices in the place of those that read
//! there before going on.

use super::{Reference, ReferenceError};
use crate::Tensor;
use crate::checkpoint::Operator;

/// Some sequences, and how far they are.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Tokens of each sequence.
    lengths: Vec<usize>,
    /// The residual stream `(T, D)`, sequence after sequence.
    x: Vec<f32>,
    /// `(T, C)`, what the matrices at this stop read.
    read: Vec<f32>,
    stop: Stop,
}

/// In front of which matrices, with the number of their layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The operator's first: `in_proj`, or queries, keys, values and gate.
    Operator(usize),
    /// The operator's last.
    OperatorOutput(usize),
    /// `w1` and `w3`.
    FeedForward(usize),
    /// `w2`.
    FeedForwardOutput(usize),
    /// The head, behind all layers.
    Head,
}

impl Passage {
    /// What the matrices at this stop read, `(T, C)`, sequence after sequence.
    pub fn read(&self) -> &[f32] {
        &self.read
    }

    /// The layer of the matrices at this stop; of the head, as many as there are.
    pub fn layer(&self, reference: &Reference<'_>) -> usize {
        match self.stop {
            Stop::Operator(layer)
            | Stop::OperatorOutput(layer)
            | Stop::FeedForward(layer)
            | Stop::FeedForwardOutput(layer) => layer,
            Stop::Head => reference.checkpoint.config().layers.len(),
        }
    }

    /// The matrices at this stop.
    pub fn readers<'a>(&self, reference: &Reference<'a>) -> Vec<Tensor<'a>> {
        let checkpoint = reference.checkpoint;
        match self.stop {
            Stop::Operator(layer) => match checkpoint.layer(layer).operator {
                Operator::Conv(conv) => vec![conv.in_proj],
                Operator::Attention(attention) => {
                    let first = [attention.q_proj, attention.k_proj, attention.v_proj];
                    first.into_iter().chain(attention.gate).collect()
                }
            },
            Stop::OperatorOutput(layer) => match checkpoint.layer(layer).operator {
                Operator::Conv(conv) => vec![conv.out_proj],
                Operator::Attention(attention) => vec![attention.o_proj],
            },
            Stop::FeedForward(layer) => {
                let tensors = checkpoint.layer(layer);
                vec![tensors.w1, tensors.w3]
            }
            Stop::FeedForwardOutput(layer) => vec![checkpoint.layer(layer).w2],
            Stop::Head => vec![checkpoint.head()],
        }
    }
}

impl Reference<'_> {
    /// Stops in front of the first matrices of the first layer with `sequences`, each from position 0 on.
    ///
    /// # Errors
    /// [`ReferenceError::TokenOutsideVocabulary`].
    pub fn passage(&self, sequences: &[Vec<u32>]) -> Result<Passage, ReferenceError> {
        let lengths = sequences.iter().map(Vec::len).collect();
        let rows: Vec<_> = sequences.iter().map(|tokens| self.embed(tokens)).collect::<Result<_, _>>()?;
        let mut passage = Passage { lengths, x: rows.concat(), read: Vec::new(), stop: Stop::Head };
        self.enter(&mut passage, 0);
        Ok(passage)
    }

    /// Goes on to the next stop, through the matrices of this one.
    ///
    /// # Panics
    /// If that was the head.
    pub fn advance(&self, passage: &mut Passage) {
        let Passage { lengths, x, read, stop } = passage;
        (*read, *stop) = match *stop {
            Stop::Operator(layer) => (self.block(layer).operator(read, lengths), Stop::OperatorOutput(layer)),
            Stop::OperatorOutput(layer) => {
                let block = self.block(layer);
                block.add_operator_output(x, read);
                (block.feed_forward_input(x), Stop::FeedForward(layer))
            }
            Stop::FeedForward(layer) => {
                (self.block(layer).feed_forward(read), Stop::FeedForwardOutput(layer))
            }
            Stop::FeedForwardOutput(layer) => {
                self.block(layer).add_feed_forward_output(x, read);
                return self.enter(passage, layer + 1);
            }
            Stop::Head => panic!("nothing comes behind the head"),
        };
    }

    fn enter(&self, passage: &mut Passage, layer: usize) {
        if layer < self.checkpoint.config().layers.len() {
            passage.read = self.block(layer).operator_input(&passage.x);
            passage.stop = Stop::Operator(layer);
        } else {
            passage.read.clone_from(&passage.x);
            self.final_norm(&mut passage.read);
            passage.stop = Stop::Head;
        }
    }
}
