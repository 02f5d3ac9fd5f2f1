//! Rotary embedding in its split-half form, with the engine's tables.

use lone_mil::{FunctionBuilder, ValueId};

use super::{Built, HEIGHT_AXIS, dim};
use crate::model::inputs::AttentionInputs;

/// x (1,H,d,S) turned by cos and sin (1,1,d,S): x cos + concat(-x[d/2:], x[:d/2]) sin.
pub(crate) fn rotate(b: &mut FunctionBuilder, x: ValueId, inputs: &AttentionInputs) -> Built {
    let halves = b.split(x, 2, dim(HEIGHT_AXIS))?;
    let minus_one = b.scalar_f16(-1.0)?;
    let negated = b.mul(halves[1], minus_one)?;
    let turned = b.concat(&[negated, halves[0]], dim(HEIGHT_AXIS))?;
    let along = b.mul(x, inputs.cos)?;
    let across = b.mul(turned, inputs.sin)?;
    b.add(along, across)
}
