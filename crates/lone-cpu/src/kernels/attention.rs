//! Attention for grouped queries over f16 caches read where they are.

use half::f16;

use super::{Kernels, VisibleKeys};
use crate::pool::Pool;

/// Rows of one cache input: `keys` and `values` f16, each `(G, rows, d)`.
#[derive(Clone, Copy, Debug)]
pub struct PastSegment<'a> {
    /// The keys, already rotated.
    pub keys: &'a [f16],
    /// The values.
    pub values: &'a [f16],
    /// How many rows each group has.
    pub rows: usize,
}

/// What attention reads. H query heads share G groups of keys and values, head h those of group h / (H / G); S queries; T rows of the past in all segments.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// H
    pub heads: usize,
    /// G, which divides H.
    pub groups: usize,
    /// d
    pub head_dim: usize,
    /// Factor of the scores, usually d^-1/2.
    pub scale: f32,
    /// `(H, S, d)`, already rotated.
    pub queries: &'a [f32],
    /// The segments of the past in the order of the mask's columns.
    pub past: &'a [PastSegment<'a>],
    /// `(G, S, d)`, the keys of this pass, already rotated.
    pub new_keys: &'a [f32],
    /// `(G, S, d)`, the values of this pass.
    pub new_values: &'a [f32],
    /// `(S, T + S)`, added to the scores.
    pub mask: &'a [f16],
    /// What [`VisibleKeys::read`] found in `mask`.
    pub visible: &'a VisibleKeys,
}

impl Attention<'_> {
    fn check(&self, out: &[f32]) {
        let (queries, past) =
            (self.visible.queries(), self.past.iter().map(|segment| segment.rows).sum::<usize>());
        assert!(self.groups > 0 && self.heads.is_multiple_of(self.groups), "attention: G divides H");
        assert_eq!(
            self.queries.len(),
            self.heads * queries * self.head_dim,
            "attention: queries are (H, S, d)"
        );
        assert_eq!(out.len(), self.queries.len(), "attention: out is (H, S, d)");
        assert_eq!(
            self.new_keys.len(),
            self.groups * queries * self.head_dim,
            "attention: new keys are (G, S, d)"
        );
        assert_eq!(self.new_values.len(), self.new_keys.len(), "attention: new values are (G, S, d)");
        assert_eq!(self.visible.keys(), past + queries, "attention: the mask has T + S columns");
        assert_eq!(self.mask.len(), queries * (past + queries), "attention: the mask is (S, T + S)");
        for segment in self.past {
            assert_eq!(
                segment.keys.len(),
                self.groups * segment.rows * self.head_dim,
                "attention: past keys are (G, T, d)"
            );
            assert_eq!(segment.values.len(), segment.keys.len(), "attention: past values are (G, T, d)");
        }
    }

    fn element(
        &self,
        group: usize,
        key: usize,
        channel: usize,
        of: impl Fn(&PastSegment<'_>, usize) -> f32,
        new: &[f32],
    ) -> f32 {
        let mut row = key;
        for segment in self.past {
            if row < segment.rows {
                return of(segment, (group * segment.rows + row) * self.head_dim + channel);
            }
            row -= segment.rows;
        }
        new[(group * self.visible.queries() + row) * self.head_dim + channel]
    }

    fn key(&self, group: usize, key: usize, channel: usize) -> f32 {
        self.element(group, key, channel, |segment, at| segment.keys[at].to_f32(), self.new_keys)
    }

    fn value(&self, group: usize, key: usize, channel: usize) -> f32 {
        self.element(group, key, channel, |segment, at| segment.values[at].to_f32(), self.new_values)
    }
}

impl Kernels {
    /// How many f32 of scratch [`Kernels::attention`] needs for `queries` = S queries of `heads` heads in a pool of `threads`.
    pub fn attention_scratch_len(heads: usize, queries: usize, head_dim: usize, threads: usize) -> usize {
        heads * queries * (head_dim + 2) * threads
    }

    /// `out (H, S, d)`: for each head and query, `softmax(scale * (query · keys) + mask)` times the values, over the visible keys.
    ///
    /// Products and sums are f32. Keys that are hidden by the mask are not read.
    ///
    /// # Panics
    /// If a length does not fit, or `scratch` is shorter than [`Kernels::attention_scratch_len`] says.
    pub fn attention(&self, pool: &Pool, attention: &Attention<'_>, out: &mut [f32], scratch: &mut [f32]) {
        attention.check(out);
        let (queries, dim) = (attention.visible.queries(), attention.head_dim);
        let scratch_len = Self::attention_scratch_len(attention.heads, queries, dim, pool.threads());
        assert!(scratch.len() >= scratch_len, "attention: scratch too short");
        pool.for_each_chunk(out, dim, |row, out| {
            let (head, query) = (row / queries, row % queries);
            let group = head / (attention.heads / attention.groups);
            let keys = || attention.visible.ranges(query).iter().cloned().flatten();
            let score = |key: usize| {
                let products =
                    (0..dim).map(|c| attention.queries[row * dim + c] * attention.key(group, key, c));
                products.sum::<f32>() * attention.scale
                    + attention.mask[query * attention.visible.keys() + key].to_f32()
            };
            let largest = keys().map(score).fold(f32::NEG_INFINITY, f32::max);
            let mut total = 0.0;
            out.fill(0.0);
            for key in keys() {
                let weight = (score(key) - largest).exp();
                total += weight;
                for (channel, out) in out.iter_mut().enumerate() {
                    *out += weight * attention.value(group, key, channel);
                }
            }
            out.iter_mut().for_each(|out| *out /= total);
        });
    }
}
