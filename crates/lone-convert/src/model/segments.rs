//! Attention over more keys than an axis can have: segment by segment, then put together.
//!
//! A segment's softmax hides the sum it divided by, but its largest share is exp(0) over that sum, so the sum is one
//! over the largest share. Taking it with `reduce_sum` would accumulate in fp16, where a sum of ones stops at 2048.

use lone_mil::{FunctionBuilder, ValueId};

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
    ) -> Result<Self, lone_mil::BuildError> {
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
