//! The gated short convolution: out_proj(C * conv(B * u)).
//!
//! The K taps are K multiply-adds over slices of a window whose time axis is the height: a grouped convolution leaves
//! the Neural Engine, and a slice with an offset on the width destroys large values.

use lone_lfm::Tensor;
use lone_lfm::checkpoint::ConvTensors;
use lone_mil::{BuildError, FunctionBuilder, ValueId};

use super::inputs::{ChunkInputs, NewState};
use super::linear::Linear;
use super::{Built, CHANNEL_AXIS, HEIGHT_AXIS, SWAP_LAST, dim};
use crate::precision::Place;
use crate::weights::{PackageWeights, Weight};

/// (1,D,1,S) to (1,D,1,S), remembering K-1 inputs.
#[derive(Debug)]
pub(crate) struct ShortConv {
    in_proj: Linear,
    /// K weights (1,D,1,1), oldest first.
    taps: Vec<Weight>,
    bias: Option<Weight>,
    out_proj: Linear,
    cache: usize,
}

impl ShortConv {
    pub(crate) fn load<'c>(
        weights: &mut PackageWeights<'c>,
        tensors: &ConvTensors<Tensor<'c>>,
        cache: usize,
    ) -> Self {
        ShortConv {
            in_proj: Linear::load(weights, tensors.in_proj, tensors.in_proj_bias, Place::Operator),
            taps: weights.taps(tensors.conv),
            bias: tensors.conv_bias.map(|bias| weights.vector(bias, CHANNEL_AXIS)),
            out_proj: Linear::load(weights, tensors.out_proj, tensors.out_proj_bias, Place::Operator),
            cache,
        }
    }

    pub(crate) fn apply(
        &self,
        b: &mut FunctionBuilder,
        x: ValueId,
        inputs: &ChunkInputs,
        state: &mut Vec<NewState>,
    ) -> Built {
        let projected = self.in_proj.apply(b, x)?;
        let [before, after, u] = three_parts(b, projected)?;
        let gated = b.mul(before, u)?;
        let gated = b.transpose(gated, &SWAP_LAST)?;
        let window = self.window(b, inputs, gated)?;
        state.push(NewState { cache: self.cache, value: window });
        let convolved = self.convolve(b, window)?;
        let convolved = b.transpose(convolved, &SWAP_LAST)?;
        let y = b.mul(after, convolved)?;
        self.out_proj.apply(b, y)
    }

    /// What was remembered and what is new (1,D,S,1), one after the other.
    fn window(&self, b: &mut FunctionBuilder, inputs: &ChunkInputs, new: ValueId) -> Built {
        let mut inputs = inputs.cache(self.cache).to_vec();
        inputs.push(new);
        b.concat(&inputs, dim(HEIGHT_AXIS))
    }

    /// window (1,D,K-1+S,1) to (1,D,S,1).
    fn convolve(&self, b: &mut FunctionBuilder, window: ValueId) -> Built {
        let tokens = b.shape(window)[HEIGHT_AXIS] - (self.taps.len() - 1);
        let mut sum = None;
        for (k, tap) in self.taps.iter().enumerate() {
            let tap = tap.value(b)?;
            let shifted = b.slice_axis(window, HEIGHT_AXIS, k..k + tokens)?;
            let product = b.mul(shifted, tap)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => b.add(sum, product)?,
            });
        }
        let sum = sum.expect("a convolution has taps");
        match &self.bias {
            None => Ok(sum),
            Some(bias) => {
                let bias = bias.value(b)?;
                b.add(sum, bias)
            }
        }
    }
}

/// B, C and u.
fn three_parts(b: &mut FunctionBuilder, x: ValueId) -> Result<[ValueId; 3], BuildError> {
    let parts = b.split(x, 3, dim(CHANNEL_AXIS))?;
    Ok(parts.try_into().expect("a split into three has three parts"))
}
