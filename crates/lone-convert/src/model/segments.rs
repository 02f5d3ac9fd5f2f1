//! Attention over more keys than an axis can have: segment by segment, then put together.
//!
//! A segment's softmax hides the sum it divided by, but its largest share is exp(0) over that sum, so the sum is one
//! over the largest share. Taking it with `reduce_sum` would accumulate in fp16, where a sum of ones stops at 2048.

use lone_mil::{BuildError, FunctionBuilder, ValueId};

use super::Built;
use super::attention::{Heads, masked_scores, weigh};

/// Keeps the sum of all segments' relative weights, each at most 16 384 / 64, within fp16.
const WEIGHT_DIVISOR: f32 = 64.0;

/// As attention over one segment, with as many keys, values and masks as there are segments.
pub(crate) fn attend_by_segments(
    b: &mut FunctionBuilder,
    heads: Heads,
    q: ValueId,
    keys: &[ValueId],
    values: &[ValueId],
    masks: &[ValueId],
) -> Built {
    let mut segments = Vec::new();
    for ((&keys, &values), &mask) in keys.iter().zip(values).zip(masks) {
        segments.push(Segment::attend(b, heads, q, keys, values, mask)?);
    }
    let tops: Vec<ValueId> = segments.iter().map(|segment| segment.top_score).collect();
    let top_score = fold(b, &tops, FunctionBuilder::maximum)?;
    let mut weights = Vec::new();
    for segment in &segments {
        weights.push(segment.relative_weight(b, top_score)?);
    }
    let total = fold(b, &weights, FunctionBuilder::add)?;
    let mut terms = Vec::new();
    for (segment, weight) in segments.iter().zip(weights) {
        let share = b.real_div(weight, total)?;
        terms.push(b.mul(segment.result, share)?);
    }
    fold(b, &terms, FunctionBuilder::add)
}

/// What is known of a segment that has been attended to by itself.
struct Segment {
    /// (1,H,S,d).
    result: ValueId,
    /// The largest score of each query, (1,H,S,1).
    top_score: ValueId,
    /// The largest share of each query, (1,H,S,1).
    top_share: ValueId,
}

impl Segment {
    fn attend(
        b: &mut FunctionBuilder,
        heads: Heads,
        q: ValueId,
        keys: ValueId,
        values: ValueId,
        mask: ValueId,
    ) -> Result<Self, BuildError> {
        let scores = masked_scores(b, heads, q, keys, mask)?;
        let top_score = b.reduce_max(scores, &[-1], true)?;
        let shares = b.softmax(scores, -1)?;
        let top_share = b.reduce_max(shares, &[-1], true)?;
        let result = weigh(b, heads, shares, values)?;
        Ok(Segment { result, top_score, top_share })
    }

    /// Its sum of exp(score - top_score of all segments), divided by [`WEIGHT_DIVISOR`].
    fn relative_weight(&self, b: &mut FunctionBuilder, top_score: ValueId) -> Built {
        let below_top = b.sub(self.top_score, top_score)?;
        let factor = b.exp(below_top)?;
        let divisor = b.scalar_f16(WEIGHT_DIVISOR)?;
        let divisor = b.mul(self.top_share, divisor)?;
        b.real_div(factor, divisor)
    }
}

/// `values` joined by `join` from the left.
fn fold(
    b: &mut FunctionBuilder,
    values: &[ValueId],
    join: impl Fn(&mut FunctionBuilder, ValueId, ValueId) -> Built,
) -> Built {
    let (&first, rest) = values.split_first().expect("there is at least one segment");
    rest.iter().try_fold(first, |joined, &value| join(b, joined, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attention::attend;
    use crate::model::trial::Trial;

    const HEADS: Heads = Heads { query: 4, key_value: 2, dim: 8 };
    const TOKENS: usize = 3;
    /// Keys of each segment; the last ones are the pass's own.
    const SEGMENTS: [usize; 4] = [7, 1, 6, TOKENS];

    fn wave(count: usize, step: usize, height: f32) -> Vec<f32> {
        (0..count).map(|i| height * ((i * step % 101) as f32 / 50.0 - 1.0)).collect()
    }

    /// The part of `rows` that are `(groups, all, width)` from row `start` on, `count` of them in each group.
    fn part(rows: &[f32], width: usize, start: usize, count: usize) -> Vec<f32> {
        let all: usize = SEGMENTS.iter().sum();
        rows.chunks(all * width)
            .flat_map(|group| &group[start * width..(start + count) * width])
            .copied()
            .collect()
    }

    #[test]
    fn segments_put_together_are_attention_over_the_whole() {
        let all: usize = SEGMENTS.iter().sum();
        let Heads { query, key_value, dim } = HEADS;
        let q = wave(query * TOKENS * dim, 7, 3.0);
        let k = wave(key_value * all * dim, 11, 3.0);
        let v = wave(key_value * all * dim, 13, 1.0);
        // The second segment is masked for all queries, and the third for the first one.
        let masked = |i: usize| (7..8).contains(&(i % all)) || (i < all && (8..14).contains(&i));
        let mask: Vec<f32> = (0..TOKENS * all).map(|i| if masked(i) { -40_000.0 } else { 0.0 }).collect();

        let q_shape = [1, key_value, query / key_value * TOKENS, dim];
        let whole = Trial::default().run(
            &[
                (q_shape, &q),
                ([1, key_value, all, dim], &k),
                ([1, key_value, all, dim], &v),
                ([1, 1, TOKENS, all], &mask),
            ],
            |b, x| attend(b, HEADS, x[0], x[1], x[2], x[3]),
        );

        let starts = [0, 7, 8, 14];
        let cut = |rows: &[f32], width| {
            starts
                .iter()
                .zip(SEGMENTS)
                .map(|(&start, count)| part(rows, width, start, count))
                .collect::<Vec<_>>()
        };
        let (keys, values, masks) = (cut(&k, dim), cut(&v, dim), cut(&mask, 1));
        let mut inputs = vec![(q_shape, &q[..])];
        for (i, &count) in SEGMENTS.iter().enumerate() {
            inputs.push(([1, key_value, count, dim], &keys[i]));
            inputs.push(([1, key_value, count, dim], &values[i]));
            inputs.push(([1, 1, TOKENS, count], &masks[i]));
        }
        let joined = Trial::default().run(&inputs, |b, x| {
            let every_third = |first: usize| x[first..].iter().copied().step_by(3).collect::<Vec<_>>();
            attend_by_segments(b, HEADS, x[0], &every_third(1), &every_third(2), &every_third(3))
        });
        for (joined, whole) in joined.iter().zip(&whole) {
            assert!((joined - whole).abs() < 2e-3, "{joined} for {whole}");
        }
    }
}
