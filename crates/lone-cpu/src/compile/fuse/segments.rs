//! Attention over a past too long for one axis: each segment attended to by itself, the results joined.
//!
//! ```text
//! p_j = softmax(scores_j)     max_j = reduce_max(scores_j)     top_j = reduce_max(p_j)     max = maximum(max_j …)
//! r_j = real_div(exp(sub(max_j, max)), mul(top_j, c))          a_j = real_div(r_j, add(r_j …))
//! out = add(mul(matmul(p_j, values_j), a_j) …)
//! ```
//! This is the softmax over all segments at once. The pass's own rows are the last segment.

use std::sync::LazyLock;

use lone_mil::ValueId;

use super::attention::{Scores, fused, product};
use super::{Rewrite, terms, unshaped};
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{Binary, Kind};
use crate::compile::pattern::{Pattern, any, constant, exp, reduce_max, softmax};

/// `output_j * a_j`
static TERM: LazyLock<Pattern> = LazyLock::new(|| {
    let scores = || any("scores");
    let top = reduce_max(softmax(scores()).named("p")).named("top");
    let share = exp(reduce_max(scores()).named("max") - any("largest")) / (top * constant("c"));
    (share.named("share") / any("shares")) * any("output")
});

pub(super) fn attention(graph: &Graph, node: &Node) -> Option<Rewrite> {
    if node.kind != Kind::Binary(Binary::Add) {
        return None;
    }
    let terms = terms(graph, Binary::Add, &node.inputs);
    let segments = terms.into_iter().map(|term| Segment::of(graph, term)).collect::<Option<Vec<_>>>()?;
    let of_all = |part: fn(&Segment) -> ValueId| segments.iter().map(part).collect::<Vec<_>>();
    let shared = |part: fn(&Segment) -> ValueId| {
        let all = of_all(part);
        all.iter().all(|&id| id == all[0]).then_some(all[0])
    };
    shared(|segment| segment.scores.query)?;
    shared(|segment| segment.constant)?;
    let largest = chain(graph, Binary::Max, shared(|segment| segment.largest)?)?;
    let shares = chain(graph, Binary::Add, shared(|segment| segment.shares)?)?;
    if largest != of_all(|segment| segment.max) || shares != of_all(|segment| segment.share) {
        return None;
    }
    let scores: Vec<Scores> = segments.iter().map(|segment| segment.scores).collect();
    fused(graph, &scores, &of_all(|segment| segment.scores.keys), &of_all(|segment| segment.values))
}

/// The terms of the chain of `op` that makes `id`.
fn chain(graph: &Graph, op: Binary, id: ValueId) -> Option<Vec<ValueId>> {
    match graph.made_by(id)? {
        (Kind::Binary(found), inputs) if *found == op => Some(terms(graph, op, inputs)),
        _ => None,
    }
}

/// The part of one segment.
struct Segment {
    scores: Scores,
    values: ValueId,
    max: ValueId,
    share: ValueId,
    /// What the parts must have in common: the largest score, the sum of all shares, the constant.
    largest: ValueId,
    shares: ValueId,
    constant: ValueId,
}

impl Segment {
    fn of(graph: &Graph, term: ValueId) -> Option<Self> {
        let found = TERM.find(graph, term)?;
        let get = |name| found.get(name);
        let (probabilities, values) = product(graph, unshaped(graph, get("output")), false)?;
        let last = graph.dims(get("scores")).len() - 1;
        let over_last = |id| match graph.made_by(id) {
            Some((Kind::Reduce { axes, .. }, _)) => *axes == [last],
            Some((Kind::Softmax { axis }, _)) => *axis == last,
            _ => false,
        };
        let fits =
            probabilities == get("p") && ["p", "max", "top"].into_iter().all(|name| over_last(get(name)));
        fits.then_some(Segment {
            scores: Scores::of(graph, get("scores"))?,
            values,
            max: get("max"),
            share: get("share"),
            largest: get("largest"),
            shares: get("shares"),
            constant: get("c"),
        })
    }
}
