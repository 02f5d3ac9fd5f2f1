//! Attention over a past that is read where it lies, never joined with the new rows.
//!
//! ```text
//! scores = add(matmul(q, concat(past_keys, new_keys)^T), mask)
//! out    = matmul(softmax(scores), concat(past_values, new_values))
//! ```
//! with reshapes between (1,G,H/G·S,…) and (1,H,S,…).

use lone_mil::{DType, ValueId};

use super::{Rewrite, unshaped};
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{self, Binary, Kind};
use crate::steps::MAX_SEGMENTS;

pub(super) fn attention(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let (probabilities, values) = product(graph, node.output, false)?;
    let (Kind::Softmax { axis }, inputs) = graph.made_by(probabilities)? else { return None };
    let scores = Scores::of(graph, inputs[0]).filter(|scores| *axis + 1 == graph.dims(scores.sum).len())?;
    let (Kind::Concat { axis: 2 }, keys) = graph.made_by(scores.keys)? else { return None };
    let (Kind::Concat { axis: 2 }, values) = graph.made_by(values)? else { return None };
    fused(graph, &[scores], keys, values)
}

/// `matmul(unshaped, unshaped)`
pub(super) fn product(graph: &Graph, id: ValueId, transposed: bool) -> Option<(ValueId, ValueId)> {
    match graph.made_by(id)? {
        (Kind::MatMul { transpose_x: false, transpose_y }, inputs) if *transpose_y == transposed => {
            Some((unshaped(graph, inputs[0]), inputs[1]))
        }
        _ => None,
    }
}

/// `sum = query keys^T + mask`
#[derive(Clone, Copy)]
pub(super) struct Scores {
    /// `(1,H,S,T)`
    pub(super) sum: ValueId,
    pub(super) query: ValueId,
    pub(super) keys: ValueId,
    pub(super) mask: ValueId,
}

impl Scores {
    pub(super) fn of(graph: &Graph, sum: ValueId) -> Option<Self> {
        let (Kind::Binary(Binary::Add), inputs) = graph.made_by(sum)? else { return None };
        [[inputs[0], inputs[1]], [inputs[1], inputs[0]]].into_iter().find_map(|[scores, mask]| {
            let (query, keys) = product(graph, unshaped(graph, scores), true)?;
            Some(Scores { sum, query, keys, mask })
        })
    }
}

/// Attention with one mask per entry of `scores`, over `keys` and `values` of which the last are the new ones.
pub(super) fn fused(
    graph: &Graph,
    scores: &[Scores],
    keys: &[ValueId],
    values: &[ValueId],
) -> Option<Rewrite> {
    let [1, heads, queries, _] = *graph.dims(scores[0].sum) else { return None };
    let (&new_keys, past_keys) = keys.split_last()?;
    let (&new_values, past_values) = values.split_last()?;
    let [1, groups, new, head_dim] = *graph.dims(new_keys) else { return None };
    let query = scores[0].query;

    let rows = |id: ValueId| match *graph.dims(id) {
        [1, g, rows, d] if g == groups && d == head_dim => Some(rows),
        _ => None,
    };
    let is_past = |id: ValueId| graph.inputs.contains(&id) && graph.get(id).ty.dtype == DType::F16;
    let alike = keys.len() == values.len() && keys.iter().zip(values).all(|(&k, &v)| rows(k) == rows(v));
    let in_place = past_keys.iter().chain(past_values).all(|&id| is_past(id) && rows(id).is_some());
    let masks = scores.iter().map(|scores| scores.mask);
    let masked = masks.clone().map(|mask| match *graph.dims(mask) {
        [1, 1, s, columns] if s == queries => Some(columns),
        _ => None,
    });
    let columns = masked.sum::<Option<usize>>()?;
    let fits = new == queries
        && alike
        && in_place
        && !past_keys.is_empty()
        && past_keys.len() <= MAX_SEGMENTS
        && heads.is_multiple_of(groups)
        && graph.get(query).ty.shape.elements() == heads * queries * head_dim
        && keys.iter().map(|&id| rows(id)).sum::<Option<usize>>() == Some(columns);
    let past = past_keys.iter().zip(past_values).flat_map(|(&k, &v)| [k, v]);
    fits.then(|| Rewrite {
        kind: Kind::Attention(kind::Attention { heads, groups, queries, head_dim, masks: scores.len() }),
        inputs: [query, new_keys, new_values].into_iter().chain(masks).chain(past).collect(),
    })
}
