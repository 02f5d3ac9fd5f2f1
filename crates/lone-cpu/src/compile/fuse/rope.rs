//! Rotary position embedding in its split-half form.

use std::sync::LazyLock;

use lone_mil::ValueId;

use super::Rewrite;
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{Kind, Range};
use crate::compile::pattern::{Pattern, any, concat, number, slice};

/// `x * cos + concat(-x[d/2..], x[..d/2]) * sin`
static ROPE: LazyLock<Pattern> = LazyLock::new(|| {
    let x = || any("x");
    let rotated = concat(number(-1.0) * slice(x()).named("high"), slice(x()).named("low")).named("rotated");
    rotated * any("sin") + x() * any("cos")
});

pub(super) fn rope(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let found = ROPE.find(graph, node.output)?;
    let [x, cos, sin] = ["x", "cos", "sin"].map(|name| found.get(name));
    let (Kind::Concat { axis }, _) = graph.made_by(found.get("rotated"))? else { return None };
    let (axis, dims) = (*axis, graph.dims(x));
    let half = dims[axis] / 2;
    let halves = dims[axis] % 2 == 0
        && is_slice(graph, found.get("low"), &Range::along(dims, axis, 0, half))
        && is_slice(graph, found.get("high"), &Range::along(dims, axis, half, half));
    let is_table = |id: ValueId| {
        let table = graph.dims(id);
        table.len() == dims.len()
            && table[axis..] == dims[axis..]
            && table[..axis].iter().all(|&dim| dim == 1)
    };
    let fits = halves && is_table(cos) && is_table(sin);
    fits.then(|| Rewrite { kind: Kind::Rope { axis }, inputs: vec![x, cos, sin] })
}

fn is_slice(graph: &Graph, id: ValueId, expected: &[Range]) -> bool {
    matches!(graph.made_by(id), Some((Kind::Slice { ranges }, _)) if ranges == expected)
}
