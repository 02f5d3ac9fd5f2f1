//! The SwiGLU feed-forward: w2(silu(w1 x) * w3 x).

use lone_lfm::Tensor;
use lone_lfm::checkpoint::LayerTensors;
use lone_mil::{FunctionBuilder, ValueId};

use super::Built;
use super::gates::silu;
use super::linear::Linear;
use crate::precision::{Place, Precision};
use crate::weights::PackageWeights;

/// (1,D,1,S) to (1,D,1,S), by way of F channels.
#[derive(Debug)]
pub(crate) struct FeedForward {
    gate: Linear,
    up: Linear,
    down: Linear,
    precision: Precision,
}

impl FeedForward {
    pub(crate) fn load<'c>(weights: &mut PackageWeights<'c>, tensors: &LayerTensors<Tensor<'c>>) -> Self {
        let mut linear = |matrix| Linear::load(weights, matrix, None, Place::FeedForward);
        FeedForward {
            gate: linear(tensors.w1),
            up: linear(tensors.w3),
            down: linear(tensors.w2),
            precision: weights.precision(),
        }
    }

    pub(crate) fn apply(&self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let gate = self.gate.apply(b, x)?;
        let gate = silu(b, gate, self.precision)?;
        let up = self.up.apply(b, x)?;
        let product = b.mul(gate, up)?;
        self.down.apply(b, product)
    }
}
