//! One task of attention: some queries of a group's heads against a share of the keys, in one pass with a
//! running largest score.
//!
//! Keys come 64 at a time. Sixteen keys become a panel as in a matrix product (or, with few query vectors,
//! are multiplied row by row), so scores come out sixteen to a block for each query vector; weights replace
//! them in place; values are then summed, sixteen channels at a time, without being transposed.

use std::ops::Range;

use super::activation::exp;
use super::attention::Attention;
use super::dots;
use super::matmul::{self, Block, PanelRows};
use super::weights::{F16Rows, F32Rows, Number, NumberRow, NumberRows, WeightRows};
use super::width::{WidthKernel, with_width};
use crate::isa::{Aligned, CACHE_LINE, Kernel, LANES, Simd};
use crate::pages::Pages;

/// How far ahead of what is read of caches to ask for more.
const AHEAD: usize = Pages::Usual.prefetch_distance();

/// Keys at hand at a time.
const KEYS: usize = 64;

/// Channels of keys per panel: whole chunks.
const DEPTH: usize = 128;

/// Which part of an attention: the heads of `group`, `queries`, and the keys of one share out of `shares`.
pub(super) struct Task {
    pub(super) group: usize,
    pub(super) heads: usize,
    pub(super) queries: Range<usize>,
    pub(super) share: usize,
    pub(super) shares: usize,
}

/// Leaves a [`Partial`] in `scratch`.
pub(super) struct Attend<'a> {
    pub(super) attention: &'a Attention<'a>,
    pub(super) task: Task,
    pub(super) scratch: &'a mut [f32],
}

impl Kernel for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { attention, task, scratch } = self;
        let (dim, group) = (attention.head_dim, task.group);
        let mut partial = Partial::new(scratch, task.heads * task.queries.len(), dim);
        let vectors = partial.total.len();
        let few = dots::suit(vectors, dim);
        let width = matmul::group_width(vectors, S::TILE_COLUMNS);
        partial.pack_queries(attention, &task, if few { 1 } else { width });
        let mut walk = Walk { attention, task, width, partial, panel: Aligned([[0.0; LANES]; DEPTH]) };
        let mut start = 0;
        for segment in attention.past {
            let keys = F16Rows::new(&segment.keys[group * segment.rows * dim..][..segment.rows * dim], dim);
            let values =
                F16Rows::new(&segment.values[group * segment.rows * dim..][..segment.rows * dim], dim);
            walk.attend(simd, keys, values, start..start + segment.rows);
            start += segment.rows;
        }
        let rows = attention.visible.queries();
        let keys = F32Rows::new(&attention.new_keys[group * rows * dim..][..rows * dim], dim);
        let values = F32Rows::new(&attention.new_values[group * rows * dim..][..rows * dim], dim);
        walk.attend(simd, keys, values, start..start + rows);
    }
}

/// A task under way.
struct Walk<'a> {
    attention: &'a Attention<'a>,
    task: Task,
    width: usize,
    partial: Partial<'a>,
    panel: Aligned<[Block; DEPTH]>,
}

impl Walk<'_> {
    /// Takes in the keys of this task's share that lie in `segment`, whose rows `keys` and `values` are.
    #[inline(always)]
    fn attend<S: Simd, T: Number>(
        &mut self,
        simd: S,
        keys: NumberRows<'_, T>,
        values: NumberRows<'_, T>,
        segment: Range<usize>,
    ) {
        let (visible, queries) = (self.attention.visible, self.task.queries.clone());
        let seen: usize = visible.runs(queries.clone()).map(|run| run.len()).sum();
        let share =
            seen * self.task.share / self.task.shares..seen * (self.task.share + 1) / self.task.shares;
        let mut before = 0;
        for run in visible.runs(queries) {
            // What of the run is this task's, as visible keys are counted, and in this segment.
            let start = segment.start.max(run.start + share.start.saturating_sub(before));
            let end = segment.end.min(run.end).min(run.start + share.end.saturating_sub(before));
            before += run.len();
            for first in (start..end).step_by(KEYS) {
                let tile = first..end.min(first + KEYS);
                let rows = first - segment.start..tile.end - segment.start;
                self.score(simd, keys, rows.clone());
                for vector in 0..self.partial.total.len() {
                    self.weigh(simd, vector, &tile);
                }
                self.sum_values(simd, values, rows);
            }
        }
    }

    /// `scores[key, vector] = query · key`
    #[inline(always)]
    fn score<S: Simd, T: Number>(&mut self, simd: S, keys: NumberRows<'_, T>, rows: Range<usize>) {
        let (dim, vectors) = (keys.cols(), self.partial.total.len());
        if dots::suit(vectors, dim) {
            let (queries, scores) = (&*self.partial.packed, &mut *self.partial.scores);
            return with_width(simd, vectors, Score { keys, rows, queries, scores });
        }
        for (first, scores) in rows.clone().step_by(LANES).zip(self.partial.scores.chunks_exact_mut(vectors))
        {
            scores.fill([0.0; LANES]);
            let lines = PanelRows::new(keys, first..rows.end.min(first + LANES));
            for k in (0..dim).step_by(DEPTH) {
                let panel = &mut self.panel.0[..DEPTH.min(dim - k)];
                lines.fill_panel(simd, k, panel);
                let groups = self.partial.packed.chunks(self.width * dim).zip(scores.chunks_mut(self.width));
                for (group, scores) in groups {
                    let width = scores.len();
                    matmul::tile(simd, panel, &group[k * width..][..panel.len() * width], scores);
                }
            }
        }
    }

    /// Turns the scores of one query vector into weights relative to its largest score so far, and what is
    /// summed up already with them.
    #[inline(always)]
    fn weigh<S: Simd>(&mut self, simd: S, vector: usize, tile: &Range<usize>) {
        self.mask(vector, tile);
        let (vectors, blocks) = (self.partial.total.len(), tile.len().div_ceil(LANES));
        let mut largest = simd.splat(f32::NEG_INFINITY);
        for block in 0..blocks {
            largest = simd.max(simd.load(&self.partial.scores[block * vectors + vector]), largest);
        }
        let old = self.partial.largest[vector];
        let largest = simd.largest(largest).max(old);
        // Where there is nothing but -infinity, any reference keeps the weights zero.
        let reference = simd.splat(if largest == f32::NEG_INFINITY { 0.0 } else { largest });
        let mut total = simd.splat(0.0);
        for block in 0..blocks {
            let score = &mut self.partial.scores[block * vectors + vector];
            let weight = exp(simd, simd.sub(simd.load(score), reference));
            total = simd.add(total, weight);
            simd.store(weight, score);
        }
        if largest > old {
            let factor = (old - largest).exp();
            self.partial.largest[vector] = largest;
            self.partial.total[vector] *= factor;
            let blocks = self.attention.head_dim.div_ceil(LANES);
            for value in &mut self.partial.values[vector * blocks..][..blocks] {
                simd.store(simd.mul(simd.load(value), simd.splat(factor)), value);
            }
        }
        self.partial.total[vector] += simd.sum(total);
    }

    /// Adds the mask to the scores of one query vector, and hides what its query does not see.
    fn mask(&mut self, vector: usize, tile: &Range<usize>) {
        let visible = self.attention.visible;
        let query = self.task.queries.start + vector % self.task.queries.len();
        let ranges = visible.ranges_after(query, tile.start);
        let all = ranges.first().is_some_and(|range| range.start <= tile.start && range.end >= tile.end);
        if all && tile.len().is_multiple_of(LANES) && !visible.weighted() {
            return;
        }
        let mask = &self.attention.mask[query * visible.keys()..][tile.clone()];
        let vectors = self.partial.total.len();
        let mut seen = [[f32::NEG_INFINITY; LANES]; KEYS / LANES];
        for range in ranges.iter().take_while(|range| range.start < tile.end) {
            let (start, end) =
                (range.start.max(tile.start) - tile.start, range.end.min(tile.end) - tile.start);
            for (key, bias) in (start..end).zip(&mask[start..end]) {
                let score = self.partial.scores[key / LANES * vectors + vector][key % LANES];
                seen[key / LANES][key % LANES] = score + bias.to_f32();
            }
        }
        for (block, seen) in seen.into_iter().enumerate().take(tile.len().div_ceil(LANES)) {
            self.partial.scores[block * vectors + vector] = seen;
        }
    }

    /// `values[vector, channel] += Σ_key weight * value`
    #[inline(always)]
    fn sum_values<S: Simd, T: Number>(&mut self, simd: S, values: NumberRows<'_, T>, rows: Range<usize>) {
        let vectors = self.partial.total.len();
        let blocks = values.cols().div_ceil(LANES);
        for (group, sums) in self.partial.values.chunks_mut(self.width * blocks).enumerate() {
            let weights = &self.partial.scores[group * self.width..];
            with_width(
                simd,
                sums.len() / blocks,
                SumValues { values, rows: rows.clone(), weights, vectors, sums },
            );
        }
    }
}

/// `scores[row / 16 * N + j][row % 16] = queries[j] · keys[row]`, row by row
struct Score<'a, T> {
    keys: NumberRows<'a, T>,
    rows: Range<usize>,
    queries: &'a [f32],
    scores: &'a mut [Block],
}

impl<T: Number> WidthKernel for Score<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let queries = dots::columns::<N>(self.queries, self.keys.cols());
        for (first, scores) in self.rows.clone().step_by(LANES).zip(self.scores.as_chunks_mut::<N>().0) {
            for lane in 0..LANES.min(self.rows.end - first) {
                let dots = dots::dots(simd, self.keys.row(first + lane), &(), queries, AHEAD);
                for (score, dot) in scores.iter_mut().zip(dots) {
                    score[lane] = dot;
                }
            }
        }
    }
}

/// `sums[j, channel] += Σ_row weights[row / 16 * vectors + j][row % 16] * values[row, channel]`
struct SumValues<'a, T> {
    values: NumberRows<'a, T>,
    rows: Range<usize>,
    weights: &'a [Block],
    vectors: usize,
    sums: &'a mut [Block],
}

impl<T: Number> WidthKernel for SumValues<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let blocks = self.values.cols().div_ceil(LANES);
        for channels in 0..blocks {
            let begins_line = (channels * NumberRow::<T>::BLOCK_BYTES).is_multiple_of(CACHE_LINE);
            let mut tile = [simd.splat(0.0); N];
            for (first, weights) in self.rows.clone().step_by(LANES).zip(self.weights.chunks(self.vectors)) {
                let weights: &[Block; N] = weights.first_chunk().expect("a weight for each sum");
                for lane in 0..LANES.min(self.rows.end - first) {
                    let row = self.values.row(first + lane);
                    if begins_line {
                        row.prefetch_block(simd, channels, AHEAD);
                    }
                    let value = row.block(simd, channels);
                    for (sum, weight) in tile.iter_mut().zip(weights) {
                        *sum = simd.mul_add(value, simd.splat(weight[lane]), *sum);
                    }
                }
            }
            for (j, tile) in tile.into_iter().enumerate() {
                let sum = &mut self.sums[j * blocks + channels];
                simd.store(simd.add(simd.load(sum), tile), sum);
            }
        }
    }
}

/// What a task has summed up, and what it works on; `vectors` = heads of the group × queries, the queries of
/// a head next to each other.
pub(super) struct Partial<'a> {
    /// `(vectors, d in blocks)`: Σ weight * value.
    values: &'a mut [Block],
    /// `(KEYS in blocks, vectors)`: the scores of the keys at hand, then their weights.
    scores: &'a mut [Block],
    /// `(vectors, d)`: the queries in groups, as for a matrix product.
    packed: &'a mut [f32],
    /// `(vectors)`: the largest score so far, which the weights are relative to.
    largest: &'a mut [f32],
    /// `(vectors)`: Σ weight.
    total: &'a mut [f32],
}

impl<'a> Partial<'a> {
    /// How many f32 it takes: whole blocks, so that the next task's begins where this one's does in a cache
    /// line.
    pub(super) fn len(vectors: usize, head_dim: usize) -> usize {
        (vectors * (head_dim.next_multiple_of(LANES) + KEYS + head_dim + 2)).next_multiple_of(LANES)
    }

    fn new(scratch: &'a mut [f32], vectors: usize, head_dim: usize) -> Self {
        let (values, rest) = scratch.split_at_mut(vectors * head_dim.next_multiple_of(LANES));
        let (scores, rest) = rest.split_at_mut(vectors * KEYS);
        let (packed, rest) = rest.split_at_mut(vectors * head_dim);
        let (largest, rest) = rest.split_at_mut(vectors);
        let total = &mut rest[..vectors];
        values.fill(0.0);
        largest.fill(f32::NEG_INFINITY);
        total.fill(0.0);
        let (values, scores) = (values.as_chunks_mut().0, scores.as_chunks_mut().0);
        Self { values, scores, packed, largest, total }
    }

    /// Packs the task's queries, scaled, into groups `(d, width)`.
    fn pack_queries(&mut self, attention: &Attention<'_>, task: &Task, width: usize) {
        let (dim, passes) = (attention.head_dim, attention.visible.queries());
        for (group, packed) in self.packed.chunks_mut(width * dim).enumerate() {
            let width_here = packed.len() / dim;
            for j in 0..width_here {
                let vector = group * width + j;
                let head = task.group * task.heads + vector / task.queries.len();
                let query = task.queries.start + vector % task.queries.len();
                let from = &attention.queries[(head * passes + query) * dim..][..dim];
                for (to, from) in packed[j..].iter_mut().step_by(width_here).zip(from) {
                    *to = from * attention.scale;
                }
            }
        }
    }

    /// The sums, the largest score and the total weight that a finished task has left for one of its vectors.
    pub(super) fn of_vector(
        scratch: &[f32],
        vectors: usize,
        head_dim: usize,
        vector: usize,
    ) -> (&[f32], f32, f32) {
        let padded = head_dim.next_multiple_of(LANES);
        let statistics = &scratch[vectors * (padded + KEYS + head_dim)..];
        (&scratch[vector * padded..][..head_dim], statistics[vector], statistics[vectors + vector])
    }
}
