//! Attention for grouped queries over f16 caches read where they are.
//!
//! The work is cut by group of heads, by block of queries and, when that gives too few tasks, by share of the
//! keys. Each task leaves its sums with the largest score and the total weight they are relative to
//! ([`Partial`]); a second step merges the shares and divides.

use half::f16;

use super::attend::{Attend, Partial, Task};
use super::{Kernels, VisibleKeys};
use crate::pool::Pool;

/// Query vectors per task, about: enough to pay for the conversion of each key, few enough to stay in the
/// second cache.
const VECTORS_PER_TASK: usize = 64;

/// Tasks per thread that the keys are cut up for.
const TASKS_PER_THREAD: usize = 4;

/// Keys below which a share is not worth a task.
const KEYS_PER_SHARE: usize = 256;

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

/// What attention reads. H query heads share G groups of keys and values, head h those of group h / (H / G);
/// S queries; T rows of the past in all segments.
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
}

impl Kernels {
    /// How many f32 of scratch [`Kernels::attention`] needs for S = `queries` in a pool of `threads`.
    pub fn attention_scratch_len(
        heads: usize,
        groups: usize,
        head_dim: usize,
        queries: usize,
        threads: usize,
    ) -> usize {
        let plan = Plan::new(heads, groups, head_dim, queries, threads, usize::MAX);
        plan.tasks() * plan.scratch_per_task()
    }

    /// `out (H, S, d)`: for each head and query, `softmax(scale * (query · keys) + mask)` times the values,
    /// over the visible keys.
    ///
    /// Products, sums and e^x are f32: |error| is about (d + 8) 2^-24 relative to the largest score and
    /// value. How sums are cut up depends on the threads of `pool`. Keys that the mask hides from every query
    /// are not read; those it hides from some only must be finite.
    ///
    /// # Panics
    /// If a length does not fit, or `scratch` is shorter than [`Kernels::attention_scratch_len`] says.
    pub fn attention(&self, pool: &Pool, attention: &Attention<'_>, out: &mut [f32], scratch: &mut [f32]) {
        attention.check(out);
        if out.is_empty() {
            return;
        }
        let &Attention { heads, groups, head_dim, visible, .. } = attention;
        let plan = Plan::new(heads, groups, head_dim, visible.queries(), pool.threads(), visible.keys());
        let scratch = scratch
            .get_mut(..plan.tasks() * plan.scratch_per_task())
            .expect("attention: scratch is long enough");
        pool.for_each_chunk(scratch, plan.scratch_per_task(), |task, scratch| {
            self.isa.run(Attend { attention, task: plan.task(task), scratch });
        });
        let scratch = &*scratch;
        pool.for_each_chunk(out, head_dim * visible.queries(), |head, out| {
            out.chunks_exact_mut(head_dim)
                .enumerate()
                .for_each(|(query, out)| plan.merge(scratch, head, query, out));
        });
    }
}

/// How the work of one pass is cut up.
#[derive(Clone, Copy)]
struct Plan {
    groups: usize,
    heads_per_group: usize,
    head_dim: usize,
    queries: usize,
    queries_per_task: usize,
    shares: usize,
}

impl Plan {
    fn new(
        heads: usize,
        groups: usize,
        head_dim: usize,
        queries: usize,
        threads: usize,
        keys: usize,
    ) -> Self {
        let heads_per_group = heads / groups;
        let blocks = (queries * heads_per_group).div_ceil(VECTORS_PER_TASK).clamp(1, queries.max(1));
        let queries_per_task = queries.div_ceil(blocks).max(1);
        let tasks = groups * queries.div_ceil(queries_per_task);
        let wanted = if threads == 1 { 1 } else { (threads * TASKS_PER_THREAD).div_ceil(tasks.max(1)) };
        let shares = wanted.min(keys / KEYS_PER_SHARE).max(1);
        Self { groups, heads_per_group, head_dim, queries, queries_per_task, shares }
    }

    fn blocks(&self) -> usize {
        self.queries.div_ceil(self.queries_per_task)
    }

    fn tasks(&self) -> usize {
        self.groups * self.blocks() * self.shares
    }

    fn scratch_per_task(&self) -> usize {
        Partial::len(self.heads_per_group * self.queries_per_task, self.head_dim)
    }

    fn task(&self, index: usize) -> Task {
        let (block, share) = (index / self.shares, index % self.shares);
        let (group, first) = (block / self.blocks(), block % self.blocks() * self.queries_per_task);
        let queries = first..self.queries.min(first + self.queries_per_task);
        Task { group, heads: self.heads_per_group, queries, share, shares: self.shares }
    }

    /// Joins what the shares of the keys have left for one head and query.
    fn merge(&self, scratch: &[f32], head: usize, query: usize, out: &mut [f32]) {
        let (group, block) = (head / self.heads_per_group, query / self.queries_per_task);
        let first = (group * self.blocks() + block) * self.shares;
        let queries = self.task(first).queries;
        let vector = head % self.heads_per_group * queries.len() + query - queries.start;
        let vectors = self.heads_per_group * queries.len();
        let tasks = scratch.chunks_exact(self.scratch_per_task()).skip(first).take(self.shares);
        let shares = tasks.map(|task| Partial::of_vector(task, vectors, self.head_dim, vector));
        let largest = shares.clone().map(|(_, largest, _)| largest).fold(f32::NEG_INFINITY, f32::max);
        let mut total = 0.0;
        out.fill(0.0);
        for (values, share_largest, share_total) in shares {
            let factor = if share_largest == largest { 1.0 } else { (share_largest - largest).exp() };
            total += factor * share_total;
            out.iter_mut().zip(values).for_each(|(out, value)| *out += factor * value);
        }
        out.iter_mut().for_each(|out| *out /= total);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::testing::{ATTENTION, Numbers, assert_near, every_isa};

    /// Everything an [`Attention`] borrows.
    struct Case {
        heads: usize,
        groups: usize,
        head_dim: usize,
        queries: Vec<f32>,
        caches: Vec<[Vec<f16>; 2]>,
        new: [Vec<f32>; 2],
        mask: Vec<f16>,
        visible: VisibleKeys,
    }

    impl Case {
        /// `mask(query, key)` counts keys as the mask does.
        fn new(
            [heads, groups, head_dim, passes]: [usize; 4],
            segments: &[usize],
            mask: impl Fn(usize, usize) -> f32,
        ) -> Self {
            let mut numbers = Numbers::seeded((heads * head_dim + passes) as u64);
            let keys = segments.iter().sum::<usize>() + passes;
            let mask: Vec<f16> =
                (0..passes * keys).map(|i| f16::from_f32(mask(i / keys, i % keys))).collect();
            let mut visible = VisibleKeys::with_capacity(passes);
            visible.read(&mask, keys);
            let mut cache =
                |rows: usize| [2.0, 1.0].map(|scale| numbers.f16s(groups * rows * head_dim, scale));
            let caches = segments.iter().map(|&rows| cache(rows)).collect();
            let queries = numbers.f32s(heads * passes * head_dim, 3.0);
            let new = [2.0, 1.0].map(|scale| numbers.f32s(groups * passes * head_dim, scale));
            Self { heads, groups, head_dim, queries, caches, new, mask, visible }
        }

        fn rows(&self, segment: usize) -> usize {
            self.caches[segment][0].len() / (self.groups * self.head_dim)
        }

        /// The key (0) or value (1) vector that `group` has at `key`.
        fn vector(&self, which: usize, group: usize, key: usize) -> Vec<f64> {
            let mut row = key;
            for (segment, cache) in self.caches.iter().enumerate() {
                let rows = self.rows(segment);
                if row < rows {
                    let from = &cache[which][(group * rows + row) * self.head_dim..][..self.head_dim];
                    return from.iter().map(|x| f64::from(x.to_f32())).collect();
                }
                row -= rows;
            }
            let from =
                &self.new[which][(group * self.visible.queries() + row) * self.head_dim..][..self.head_dim];
            from.iter().map(|&x| f64::from(x)).collect()
        }

        fn expected(&self, head: usize, query: usize) -> Vec<f64> {
            let (group, keys) = (head / (self.heads / self.groups), self.visible.keys());
            let q = &self.queries[(head * self.visible.queries() + query) * self.head_dim..][..self.head_dim];
            let score = |key: usize| {
                let dot: f64 = self.vector(0, group, key).iter().zip(q).map(|(k, &q)| k * f64::from(q)).sum();
                dot * 0.125 + f64::from(self.mask[query * keys + key].to_f32())
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let mut out = vec![0.0; self.head_dim];
            for (key, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                out.iter_mut().zip(self.vector(1, group, key)).for_each(|(out, v)| *out += weight * v);
            }
            let total: f64 = weights.iter().sum();
            out.into_iter().map(|out| out / total).collect()
        }

        fn run(&self, kernels: Kernels, threads: usize) -> Vec<f32> {
            let segments = self.caches.iter().enumerate();
            let past: Vec<PastSegment<'_>> = segments
                .map(|(i, [keys, values])| PastSegment { keys, values, rows: self.rows(i) })
                .collect();
            let attention = Attention {
                heads: self.heads,
                groups: self.groups,
                head_dim: self.head_dim,
                scale: 0.125,
                queries: &self.queries,
                past: &past,
                new_keys: &self.new[0],
                new_values: &self.new[1],
                mask: &self.mask,
                visible: &self.visible,
            };
            let scratch = Kernels::attention_scratch_len(
                self.heads,
                self.groups,
                self.head_dim,
                self.visible.queries(),
                threads,
            );
            let (mut out, mut scratch) = (vec![f32::NAN; self.queries.len()], vec![f32::NAN; scratch]);
            kernels.attention(
                &Pool::new(NonZeroUsize::new(threads).unwrap()),
                &attention,
                &mut out,
                &mut scratch,
            );
            out
        }

        /// Asserts that every instruction set, alone and with several threads, finds what the definition
        /// says.
        fn check(&self) {
            let shape = [self.heads, self.groups, self.head_dim, self.visible.queries(), self.visible.keys()];
            let rows =
                (0..self.heads).flat_map(|head| (0..self.visible.queries()).map(move |query| (head, query)));
            let expected: Vec<f64> = rows.flat_map(|(head, query)| self.expected(head, query)).collect();
            for (kernels, threads) in every_isa().flat_map(|kernels| [(kernels, 1), (kernels, 3)]) {
                let what = format!("{} {shape:?} with {threads} threads", kernels.isa());
                for (i, (&found, &expected)) in self.run(kernels, threads).iter().zip(&expected).enumerate() {
                    assert_near(found, expected, ATTENTION, &format!("{what} at {i}"));
                }
            }
        }
    }

    /// 0 or hidden: `valid` rows of the past, then causally the pass's own.
    fn causal(past: usize, valid: usize) -> impl Fn(usize, usize) -> f32 {
        move |query, key| {
            let seen = key < valid || (key >= past && key - past <= query);
            if seen { 0.0 } else { -40000.0 }
        }
    }

    #[test]
    fn one_query_sees_the_valid_rows_of_the_past_and_itself() {
        for shape in [[2, 1, 64, 1], [4, 2, 128, 1], [4, 4, 16, 1], [3, 1, 20, 1]] {
            for (past, valid) in [(0, 0), (1, 1), (40, 0), (100, 37), (700, 700)] {
                Case::new(shape, &[past], causal(past, valid)).check();
            }
        }
    }

    #[test]
    fn several_queries_see_the_past_and_causally_each_other() {
        for shape in [[4, 2, 32, 2], [8, 2, 64, 17], [2, 2, 16, 64], [2, 1, 20, 5]] {
            Case::new(shape, &[90], causal(90, 70)).check();
        }
    }

    #[test]
    fn a_ring_leaves_gaps_that_differ_from_query_to_query() {
        let ring = |query: usize, key: usize| {
            let hidden = key < 64 && (key + 64 - 20) % 64 < query + 1;
            if hidden || (key >= 64 && key - 64 > query) { -40000.0 } else { 0.0 }
        };
        Case::new([4, 2, 32, 9], &[64], ring).check();
    }

    #[test]
    fn a_past_in_segments_is_one_past() {
        Case::new([4, 2, 32, 3], &[50, 64, 7], causal(121, 119)).check();
        Case::new([2, 2, 32, 1], &[600, 600], causal(1200, 1000)).check();
    }

    #[test]
    fn mask_values_are_added_to_the_scores() {
        Case::new(
            [4, 2, 32, 4],
            &[33],
            |query, key| if key % 5 == 4 { -40000.0 } else { (query * key) as f32 / -64.0 },
        )
        .check();
    }

    #[test]
    fn a_query_that_sees_nothing_weighs_everything_by_its_mask() {
        let mut case = Case::new([2, 1, 16, 2], &[20], |query, _| if query == 0 { -40000.0 } else { 0.0 });
        // Scores would drown in a mask value of that size.
        case.queries.fill(0.0);
        case.check();
    }

    #[test]
    fn hidden_keys_are_not_read() {
        let mut case =
            Case::new([2, 1, 32, 1], &[100], |_, key| if (30..90).contains(&key) { -40000.0 } else { 0.0 });
        let clean = every_isa().map(|kernels| case.run(kernels, 1)).collect::<Vec<_>>();
        for cache in &mut case.caches[0] {
            cache[30 * 32..90 * 32].fill(f16::NAN);
        }
        assert_eq!(every_isa().map(|kernels| case.run(kernels, 1)).collect::<Vec<_>>(), clean);
    }
}
