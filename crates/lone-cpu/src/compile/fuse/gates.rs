//! Gates spelled out, so that the Neural Engine computes them exactly.

use std::sync::LazyLock;

use super::Rewrite;
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{Kind, Unary};
use crate::compile::pattern::{self, Pattern, any, exp, number};

/// `1 + e^-x`
fn logistic_divisor() -> Pattern {
    exp(number(-1.0) * any("x")) + number(1.0)
}

static SIGMOID: LazyLock<Pattern> = LazyLock::new(|| number(1.0) / logistic_divisor());

static SILU: LazyLock<Pattern> = LazyLock::new(|| any("x") / logistic_divisor());

static GATED_SILU: LazyLock<Pattern> = LazyLock::new(|| pattern::silu(any("gate")).named("silu") * any("up"));

pub(super) fn sigmoid(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let found = SIGMOID.find(graph, node.output)?;
    let fits = graph.dims(found.get("x")) == graph.dims(node.output);
    fits.then(|| Rewrite { kind: Kind::Unary(Unary::Sigmoid), inputs: vec![found.get("x")] })
}

pub(super) fn silu(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let found = SILU.find(graph, node.output)?;
    Some(Rewrite { kind: Kind::Unary(Unary::Silu), inputs: vec![found.get("x")] })
}

pub(super) fn gated_silu(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let found = GATED_SILU.find(graph, node.output)?;
    let (gate, up) = (found.get("gate"), found.get("up"));
    let fits = graph.dims(gate) == graph.dims(up) && graph.is_private(found.get("silu"));
    fits.then(|| Rewrite { kind: Kind::GatedSilu, inputs: vec![gate, up] })
}
