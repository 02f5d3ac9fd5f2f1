//! A layer: pre-norm, residual; an operator, then a feed-forward.

use lone_lfm::checkpoint::{Checkpoint, Operator as Tensors};
use lone_mil::{FunctionBuilder, ValueId};

use super::Built;
use super::attention::Attention;
use super::feed_forward::FeedForward;
use super::inputs::{ChunkInputs, NewState};
use super::norm::RmsNorm;
use super::short_conv::ShortConv;
use crate::session::Session;
use crate::weights::PackageWeights;

/// (1,D,1,S) to (1,D,1,S).
#[derive(Debug)]
pub(crate) struct Layer {
    operator_norm: RmsNorm,
    operator: Operator,
    post_operator_norm: Option<RmsNorm>,
    ffn_norm: RmsNorm,
    feed_forward: FeedForward,
    post_ffn_norm: Option<RmsNorm>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a layer, and only for as long as it takes to build"
)]
enum Operator {
    Conv(ShortConv),
    Attention(Attention),
}

impl Layer {
    pub(crate) fn load<'c>(
        weights: &mut PackageWeights<'c>,
        checkpoint: &'c Checkpoint,
        session: &Session,
        layer: usize,
    ) -> Self {
        let config = checkpoint.config();
        let tensors = checkpoint.layer(layer);
        let norm = |weights: &mut PackageWeights<'c>, weight| {
            RmsNorm::over_channels(weights, weight, config.norm_eps)
        };
        Layer {
            operator_norm: norm(weights, tensors.operator_norm),
            operator: match &tensors.operator {
                Tensors::Conv(conv) => Operator::Conv(ShortConv::load(weights, conv, session.conv(layer))),
                Tensors::Attention(attention) => {
                    let caches = session.attention(layer);
                    Operator::Attention(Attention::load(weights, attention, config, caches))
                }
            },
            post_operator_norm: tensors.post_operator_norm.map(|weight| norm(weights, weight)),
            ffn_norm: norm(weights, tensors.ffn_norm),
            feed_forward: FeedForward::load(weights, &tensors),
            post_ffn_norm: tensors.post_ffn_norm.map(|weight| norm(weights, weight)),
        }
    }

    /// The layer's output; what it wants remembered is added to `state`.
    pub(crate) fn apply(
        &self,
        b: &mut FunctionBuilder,
        x: ValueId,
        inputs: &ChunkInputs,
        state: &mut Vec<NewState>,
    ) -> Built {
        let normed = self.operator_norm.apply(b, x)?;
        let y = match &self.operator {
            Operator::Conv(conv) => conv.apply(b, normed, inputs, state)?,
            Operator::Attention(attention) => attention.apply(b, normed, inputs, state)?,
        };
        let y = apply_if_any(self.post_operator_norm.as_ref(), b, y)?;
        let x = b.add(x, y)?;

        let normed = self.ffn_norm.apply(b, x)?;
        let y = self.feed_forward.apply(b, normed)?;
        let y = apply_if_any(self.post_ffn_norm.as_ref(), b, y)?;
        b.add(x, y)
    }
}

fn apply_if_any(norm: Option<&RmsNorm>, b: &mut FunctionBuilder, x: ValueId) -> Built {
    norm.map_or(Ok(x), |norm| norm.apply(b, x))
}
