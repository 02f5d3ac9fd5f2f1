//! Linear layers take in the scale that keeps fp16 products out of the subnormals, the sums of split reductions,
//! their bias and the residual they are added to.

use lone_mil::ValueId;

use super::Rewrite;
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{Binary, Kind, Projection};

/// The projection that makes `id` for one use alone, and its inputs.
fn private(graph: &Graph, id: ValueId) -> Option<(Projection, &[ValueId])> {
    match graph.made_by(id)? {
        (Kind::Projection(projection), inputs) if graph.is_private(id) => Some((*projection, inputs)),
        _ => None,
    }
}

/// The inputs of `node` in either order, if it is an `op`.
fn operands(node: &Node, op: Binary) -> Option<[[ValueId; 2]; 2]> {
    match node.kind {
        Kind::Binary(found) if found == op => {
            let (a, b) = (node.inputs[0], node.inputs[1]);
            Some([[a, b], [b, a]])
        }
        _ => None,
    }
}

/// `mul(projection, c)`, `real_div(projection, c)`
pub(super) fn scaled(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let scale = |[projection, number]: [ValueId; 2], invert: bool| {
        let number = graph.number(number)?;
        let (projection, inputs) = private(graph, projection).filter(|(p, _)| !p.bias && !p.residual)?;
        let alpha = if invert { projection.alpha / number } else { projection.alpha * number };
        Some(Rewrite { kind: Kind::Projection(Projection { alpha, ..projection }), inputs: inputs.to_vec() })
    };
    match operands(node, Binary::Mul) {
        Some(orders) => orders.into_iter().find_map(|order| scale(order, false)),
        None => scale(operands(node, Binary::Div)?[0], true),
    }
}

/// `add(projection, projection)`
pub(super) fn summed(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let [[a, b], _] = operands(node, Binary::Add)?;
    let same_type = graph.dims(a) == graph.dims(b);
    let ((a, a_inputs), (b, b_inputs)) = (private(graph, a)?, private(graph, b)?);
    let plain = [a, b].iter().all(|p| !p.bias && !p.residual);
    let fits = plain && same_type && a.alpha == b.alpha && a.axis == b.axis;
    let kind = Kind::Projection(Projection { parts: a.parts + b.parts, ..a });
    fits.then(|| Rewrite { kind, inputs: [a_inputs, b_inputs].concat() })
}

/// `add(projection, bias)`
pub(super) fn biased(graph: &Graph, node: &Node) -> Option<Rewrite> {
    operands(node, Binary::Add)?.into_iter().find_map(|[projection, bias]| {
        let dims = graph.dims(projection);
        let (projection, inputs) = private(graph, projection).filter(|(p, _)| !p.bias && !p.residual)?;
        let fits = graph.get(bias).constant.is_some() && graph.lies_along(bias, projection.axis, dims);
        let kind = Kind::Projection(Projection { bias: true, ..projection });
        fits.then(|| Rewrite { kind, inputs: [inputs, &[bias]].concat() })
    })
}

/// `add(projection, residual)`
pub(super) fn residual(graph: &Graph, node: &Node) -> Option<Rewrite> {
    operands(node, Binary::Add)?.into_iter().find_map(|[projection, residual]| {
        let fits = graph.dims(projection) == graph.dims(residual);
        let (projection, inputs) = private(graph, projection).filter(|(p, _)| !p.residual)?;
        let kind = Kind::Projection(Projection { residual: true, ..projection });
        fits.then(|| Rewrite { kind, inputs: [inputs, &[residual]].concat() })
    })
}
