//! Grouped-query attention: causal, full or sliding, with normed and rotated queries and keys, and LFM3's gate.

use super::linear::{Linear, dot};
use super::{norm, sigmoid};
use crate::checkpoint::AttentionTensors;
use crate::rope::{Rope, RopeTables};
use crate::{Config, LayerKind, Tensor};

/// `x` is `(T, D)`, sequence after sequence, and the result `(T, H*d)`.
pub(super) fn forward(
    config: &Config,
    kind: LayerKind,
    tensors: &AttentionTensors<Tensor<'_>>,
    linear: Linear<'_>,
    x: &[f32],
    lengths: &[usize],
) -> Vec<f32> {
    let rope =
        config.rope(kind).expect("a config resolves a rotary embedding for every attention kind it uses");
    let rope = Rope::new(rope, config.head_dim);
    let mut queries = linear.apply(x, tensors.q_proj, None);
    let mut keys = linear.apply(x, tensors.k_proj, None);
    let values = linear.apply(x, tensors.v_proj, None);
    for (heads, norm) in [(&mut queries, tensors.q_norm), (&mut keys, tensors.k_norm)] {
        norm::rms_norm(heads, norm, config.norm_eps);
    }
    let window = match kind {
        LayerKind::SlidingAttention => config.sliding_window.unwrap_or(usize::MAX),
        LayerKind::FullAttention | LayerKind::Conv => usize::MAX,
    };
    let [query_width, key_width] = [config.heads, config.kv_heads].map(|heads| heads * config.head_dim);
    let mut y = Vec::with_capacity(queries.len());
    let mut start = 0;
    for &length in lengths {
        let rows = |width| start * width..(start + length) * width;
        let angles = rope.tables(0, length);
        let (queries, keys) = (&mut queries[rows(query_width)], &mut keys[rows(key_width)]);
        rotate(queries, config.head_dim, &angles);
        rotate(keys, config.head_dim, &angles);
        let values = &values[rows(key_width)];
        y.extend(Attention { config, window, queries, keys, values }.attend(linear.threads));
        start += length;
    }
    if let Some(gate) = tensors.gate {
        let gates = linear.apply(x, gate, None);
        for (head, gate) in y.chunks_exact_mut(config.head_dim).zip(gates) {
            head.iter_mut().for_each(|y| *y *= sigmoid(gate));
        }
    }
    y
}

/// Turns every head of `x`, `(T, heads, d)`: `x*cos + concat(-x[d/2:], x[:d/2])*sin`.
fn rotate(x: &mut [f32], head_dim: usize, angles: &RopeTables) {
    let half = head_dim / 2;
    let token_width = x.len() * head_dim / angles.cos.len().max(1);
    let angles = angles.cos.chunks_exact(head_dim).zip(angles.sin.chunks_exact(head_dim));
    for (token, (cos, sin)) in x.chunks_exact_mut(token_width.max(1)).zip(angles) {
        for head in token.chunks_exact_mut(head_dim) {
            let (first, second) = head.split_at_mut(half);
            for (pair, (a, b)) in first.iter_mut().zip(second).enumerate() {
                (*a, *b) = (*a * cos[pair] - *b * sin[pair], *b * cos[pair] + *a * sin[pair]);
            }
        }
    }
}

/// Queries `(T, H, d)`, keys and values `(T, G, d)`; a query sees the last `window` positions, its own included.
#[derive(Clone, Copy)]
struct Attention<'a> {
    config: &'a Config,
    window: usize,
    queries: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
}

impl Attention<'_> {
    /// The result is `(T, H, d)`. Threads take runs of queries.
    fn attend(self, threads: usize) -> Vec<f32> {
        let query_width = self.config.heads * self.config.head_dim;
        let token_count = self.queries.len() / query_width;
        let run = token_count.div_ceil(threads).max(1);
        let mut y = vec![0.0; self.queries.len()];
        std::thread::scope(|scope| {
            for (number, y) in y.chunks_mut(run * query_width).enumerate() {
                scope.spawn(move || {
                    for (offset, y) in y.chunks_exact_mut(query_width).enumerate() {
                        self.attend_from(number * run + offset, y);
                    }
                });
            }
        });
        y
    }

    /// One query position; `y` is `(H, d)`.
    fn attend_from(self, position: usize, y: &mut [f32]) {
        let Config { heads, kv_heads, head_dim, .. } = *self.config;
        let seen = (position + 1).saturating_sub(self.window)..position + 1;
        let scale = 1.0 / (head_dim as f32).sqrt();
        let queries = &self.queries[position * heads * head_dim..][..heads * head_dim];
        let by_head = queries.chunks_exact(head_dim).zip(y.chunks_exact_mut(head_dim));
        for (head, (query, y)) in by_head.enumerate() {
            let group = head / (heads / kv_heads);
            let row = |t: usize| (t * kv_heads + group) * head_dim..(t * kv_heads + group + 1) * head_dim;
            let mut weights: Vec<f32> =
                seen.clone().map(|t| dot(query, &self.keys[row(t)]) * scale).collect();
            softmax(&mut weights);
            for (t, weight) in seen.clone().zip(weights) {
                y.iter_mut().zip(&self.values[row(t)]).for_each(|(y, value)| *y += weight * value);
            }
        }
    }
}

fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
        sum += f64::from(*score);
    }
    let scale = (1.0 / sum) as f32;
    scores.iter_mut().for_each(|score| *score *= scale);
}
