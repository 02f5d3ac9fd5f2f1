//! RMS norms, in the form that is safe in fp16 and in the plain one.

use std::sync::LazyLock;

use super::Rewrite;
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{Kind, Unary};
use crate::compile::pattern::{Match, Pattern, abs, any, constant, maximum, reduce_max, reduce_mean, rsqrt};

/// `x / sqrt(mean(x²) + eps) * w`, both sides of the division divided by the largest |x|.
static RANGE_SAFE: LazyLock<Pattern> = LazyLock::new(|| {
    let x = || any("x");
    let largest = || maximum(reduce_max(abs(x())).named("reduction"), constant("floor")).named("largest");
    let y = || (x() / largest()).named("y");
    let e = || (constant("root_epsilon") / largest()).named("e");
    let mean = reduce_mean(y() * y()).named("mean");
    (y() * rsqrt(mean + e() * e()).named("root")) * constant("weight")
});

/// `x * rsqrt(mean(x²) + eps) * w`
static PLAIN: LazyLock<Pattern> = LazyLock::new(|| {
    let x = || any("x");
    let mean = reduce_mean(x() * x()).named("mean");
    (rsqrt(mean + constant("epsilon")).named("root") * x()) * constant("weight")
});

/// An epsilon of `rsqrt` that changes nothing beside a mean of squares of which one is 1.
const NEGLIGIBLE: f32 = 1e-11;

pub(super) fn rms_norm(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let (found, epsilon) = range_safe(graph, node).or_else(|| plain(graph, node))?;
    let [axis] = *reduced_axes(graph, &found, "mean")? else { return None };
    let (x, weight) = (found.get("x"), found.get("weight"));
    let fits = graph.lies_along(weight, axis, graph.dims(x)) && graph.dims(x) == graph.dims(node.output);
    fits.then(|| Rewrite { kind: Kind::RmsNorm { axis, epsilon }, inputs: vec![x, weight] })
}

fn range_safe(graph: &Graph, node: &Node) -> Option<(Match, f32)> {
    let found = RANGE_SAFE.find(graph, node.output)?;
    let same_axes = reduced_axes(graph, &found, "reduction")? == reduced_axes(graph, &found, "mean")?;
    let safe = same_axes && rsqrt_epsilon(graph, &found)? <= NEGLIGIBLE;
    let root_epsilon = graph.number(found.get("root_epsilon")).filter(|_| safe)?;
    Some((found, root_epsilon * root_epsilon))
}

fn plain(graph: &Graph, node: &Node) -> Option<(Match, f32)> {
    let found = PLAIN.find(graph, node.output)?;
    let epsilon = graph.number(found.get("epsilon"))? + rsqrt_epsilon(graph, &found)?;
    Some((found, epsilon))
}

fn reduced_axes<'g>(graph: &'g Graph, found: &Match, name: &str) -> Option<&'g [usize]> {
    match graph.made_by(found.get(name))? {
        (Kind::Reduce { axes, .. }, _) => Some(axes),
        _ => None,
    }
}

fn rsqrt_epsilon(graph: &Graph, found: &Match) -> Option<f32> {
    match graph.made_by(found.get("root"))? {
        (Kind::Unary(Unary::Rsqrt { epsilon }), _) => Some(*epsilon),
        _ => None,
    }
}
