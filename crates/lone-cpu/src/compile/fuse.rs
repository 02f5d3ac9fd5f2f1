//! Fusion: groups of operations that one step can do better.
//!
//! Each rule looks at a node and what leads to it and says what could stand in its place; the formula it knows is
//! written at its top. Values that others need too, or that are to be kept, stay as they are: a rule only takes the
//! place of one node, and what then has no use is dropped.

mod attention;
mod gates;
mod linear;
mod norm;
mod rope;
mod segments;
mod short_conv;

use lone_mil::ValueId;

use super::graph::{Graph, Node};
use super::kind::{Binary, Kind};

/// What takes the place of a node.
struct Rewrite {
    kind: Kind,
    inputs: Vec<ValueId>,
}

type Rule = fn(&Graph, &Node) -> Option<Rewrite>;

/// In the order they are tried; each goes once through the whole function, and at each node as often as it applies.
const RULES: &[&[Rule]] = &[
    &[norm::rms_norm],
    // Before the linear layers, which would take in the minus of a gate.
    &[gates::silu, gates::sigmoid],
    &[gates::gated_silu],
    &[linear::scaled, linear::summed, linear::biased, linear::residual],
    &[rope::rope],
    &[short_conv::short_conv],
    &[segments::attention, attention::attention],
];

/// Applies all rules to `graph`.
pub(crate) fn fuse(graph: &mut Graph) {
    for rules in RULES {
        for index in 0..graph.nodes.len() {
            while let Some(rewrite) = rewrite(graph, index, rules) {
                graph.replace(index, rewrite.kind, rewrite.inputs);
            }
        }
    }
}

fn rewrite(graph: &Graph, index: usize, rules: &[Rule]) -> Option<Rewrite> {
    let node = graph.nodes[index].as_ref()?;
    rules.iter().find_map(|rule| rule(graph, node))
}

/// The value `id` is a reshape of, however many there are in between.
fn unshaped(graph: &Graph, mut id: ValueId) -> ValueId {
    while let Some((Kind::Reshape, inputs)) = graph.made_by(id) {
        id = inputs[0];
    }
    id
}

/// More terms than any sum that is fused has.
const MAX_TERMS: usize = 64;

/// The terms of a chain of `op` that ends in `inputs`, from left to right; of an overlong chain, its end.
fn terms(graph: &Graph, op: Binary, inputs: &[ValueId]) -> Vec<ValueId> {
    let mut found = Vec::new();
    let mut left: Vec<ValueId> = inputs.to_vec();
    while let Some(id) = left.pop() {
        match graph.made_by(id) {
            Some((Kind::Binary(inner), inputs))
                if *inner == op && graph.is_private(id) && left.len() + found.len() < MAX_TERMS =>
            {
                left.extend(inputs);
            }
            _ => found.push(id),
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests;
