//! Grouped-query attention over `past ++ new`, decomposed: two fused attentions in one function break on the Neural
//! Engine, and no fused one knows groups.

use lone_lfm::checkpoint::AttentionTensors;
use lone_lfm::{Config, Tensor};
use lone_mil::{FunctionBuilder, ValueId};

use super::gates::sigmoid;
use super::inputs::{AttentionInputs, ChunkInputs, NewState};
use super::linear::Linear;
use super::norm::RmsNorm;
use super::rotary::rotate;
use super::segments::attend_by_segments;
use super::{Built, HEIGHT_AXIS, SWAP_LAST, dim};
use crate::precision::{Place, Precision};
use crate::session::AttentionCaches;
use crate::weights::PackageWeights;

/// (1,D,1,S) to (1,D,1,S), remembering keys and values.
#[derive(Debug)]
pub(crate) struct Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    gate: Option<Linear>,
    o_proj: Linear,
    heads: Heads,
    precision: Precision,
    caches: AttentionCaches,
}

/// H, G and d.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) query: usize,
    pub(crate) key_value: usize,
    pub(crate) dim: usize,
}

impl Attention {
    pub(crate) fn load<'c>(
        weights: &mut PackageWeights<'c>,
        tensors: &AttentionTensors<Tensor<'c>>,
        config: &Config,
        caches: AttentionCaches,
    ) -> Self {
        let linear =
            |weights: &mut PackageWeights<'c>, matrix| Linear::load(weights, matrix, None, Place::Operator);
        Attention {
            q_proj: linear(weights, tensors.q_proj),
            k_proj: linear(weights, tensors.k_proj),
            v_proj: linear(weights, tensors.v_proj),
            q_norm: RmsNorm::over_heads(weights, tensors.q_norm, config.norm_eps),
            k_norm: RmsNorm::over_heads(weights, tensors.k_norm, config.norm_eps),
            gate: tensors.gate.map(|gate| linear(weights, gate)),
            o_proj: linear(weights, tensors.o_proj),
            heads: Heads { query: config.heads, key_value: config.kv_heads, dim: config.head_dim },
            precision: weights.precision(),
            caches,
        }
    }

    pub(crate) fn apply(
        &self,
        b: &mut FunctionBuilder,
        x: ValueId,
        inputs: &ChunkInputs,
        state: &mut Vec<NewState>,
    ) -> Built {
        let shared = inputs.attention(self.caches.kind);
        let q = self.queries(b, x, shared)?;
        let k = self.keys(b, x, shared)?;
        let v = self.values(b, x)?;
        state.push(NewState { cache: self.caches.key, value: k });
        state.push(NewState { cache: self.caches.value, value: v });

        let past_and = |cache, new| inputs.cache(cache).iter().copied().chain([new]).collect::<Vec<_>>();
        let keys = past_and(self.caches.key, k);
        let values = past_and(self.caches.value, v);
        let attended = match shared.masks[..] {
            [mask] => {
                let keys = b.concat(&keys, dim(HEIGHT_AXIS))?;
                let values = b.concat(&values, dim(HEIGHT_AXIS))?;
                attend(b, self.heads, q, keys, values, mask)?
            }
            _ => attend_by_segments(b, self.heads, q, &keys, &values, &shared.masks)?,
        };
        let attended = b.transpose(attended, &SWAP_LAST)?;
        let gated = self.gated(b, attended, x)?;
        let joined = self.heads.join(b, gated)?;
        self.o_proj.apply(b, joined)
    }

    /// Normed, rotated, scaled and grouped: (1,G,H/G·S,d).
    fn queries(&self, b: &mut FunctionBuilder, x: ValueId, shared: &AttentionInputs) -> Built {
        let q = self.q_proj.apply(b, x)?;
        let q = self.heads.split(b, q, self.heads.query)?;
        let q = self.q_norm.apply(b, q)?;
        let q = rotate(b, q, shared)?;
        let scale = b.scalar_f16((self.heads.dim as f32).sqrt().recip())?;
        let q = b.mul(q, scale)?;
        let q = b.transpose(q, &SWAP_LAST)?;
        self.heads.group(b, q)
    }

    /// Normed and rotated: (1,G,S,d).
    fn keys(&self, b: &mut FunctionBuilder, x: ValueId, shared: &AttentionInputs) -> Built {
        let k = self.k_proj.apply(b, x)?;
        let k = self.heads.split(b, k, self.heads.key_value)?;
        let k = self.k_norm.apply(b, k)?;
        let k = rotate(b, k, shared)?;
        b.transpose(k, &SWAP_LAST)
    }

    /// (1,G,S,d).
    fn values(&self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let v = self.v_proj.apply(b, x)?;
        let v = self.heads.split(b, v, self.heads.key_value)?;
        b.transpose(v, &SWAP_LAST)
    }

    /// Each head of `attended` (1,H,d,S) times the sigmoid of its gate on x.
    fn gated(&self, b: &mut FunctionBuilder, attended: ValueId, x: ValueId) -> Built {
        let Some(gate) = &self.gate else { return Ok(attended) };
        let gate = gate.apply(b, x)?;
        let gate = sigmoid(b, gate, self.precision)?;
        b.mul(attended, gate)
    }
}

impl Heads {
    /// (1,heads·d,1,S) as (1,heads,d,S).
    fn split(self, b: &mut FunctionBuilder, x: ValueId, heads: usize) -> Built {
        let tokens = b.shape(x)[3];
        b.reshape(x, &[1, heads, self.dim, tokens].map(dim))
    }

    /// (1,H,d,S) as (1,H·d,1,S).
    fn join(self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let tokens = b.shape(x)[3];
        b.reshape(x, &[1, self.query * self.dim, 1, tokens].map(dim))
    }

    /// (1,H,S,n) as (1,G,H/G·S,n): the query heads that share a key/value head, one after the other.
    pub(crate) fn group(self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let (tokens, width) = (b.shape(x)[2], b.shape(x)[3]);
        let rows = self.query / self.key_value * tokens;
        b.reshape(x, &[1, self.key_value, rows, width].map(dim))
    }

    /// The opposite of [`Heads::group`].
    pub(crate) fn ungroup(self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let (rows, width) = (b.shape(x)[2], b.shape(x)[3]);
        let tokens = rows * self.key_value / self.query;
        b.reshape(x, &[1, self.query, tokens, width].map(dim))
    }
}

/// softmax(q·keys + mask)·values: q (1,G,H/G·S,d), keys and values (1,G,T+S,d), mask (1,1,S,T+S), to (1,H,S,d).
pub(crate) fn attend(
    b: &mut FunctionBuilder,
    heads: Heads,
    q: ValueId,
    keys: ValueId,
    values: ValueId,
    mask: ValueId,
) -> Built {
    let scores = masked_scores(b, heads, q, keys, mask)?;
    let shares = b.softmax(scores, -1)?;
    weigh(b, heads, shares, values)
}

/// q·keys + mask, (1,H,S,keys).
pub(crate) fn masked_scores(
    b: &mut FunctionBuilder,
    heads: Heads,
    q: ValueId,
    keys: ValueId,
    mask: ValueId,
) -> Built {
    let scores = b.matmul(q, keys, false, true)?;
    let scores = heads.ungroup(b, scores)?;
    b.add(scores, mask)
}

/// shares (1,H,S,keys) times values (1,G,keys,d), to (1,H,S,d).
pub(crate) fn weigh(b: &mut FunctionBuilder, heads: Heads, shares: ValueId, values: ValueId) -> Built {
    let shares = heads.group(b, shares)?;
    let sum = b.matmul(shares, values, false, false)?;
    heads.ungroup(b, sum)
}
