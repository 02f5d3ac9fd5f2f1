//! Lowering: nodes become steps, values become views of buffers.
//!
//! ```text
//! b = split(in_proj(x))[0]                 no step: b is a view of the projection's buffer
//! n = rms_norm(x, w)                       [n] = norm([x], [w]), n a new buffer
//! k = concat(past, new)                    two copies into the parts of one buffer
//! ```
//! A value is copied only where a step wants its elements next to each other, in f32, and they are not; it then
//! stays copied.

mod elementwise;
mod fused;
mod linear;
mod moving;
mod place;
mod rows;

use lone_mil::{BackendError, BlobFile, DType, ValueId};

use super::constants::Constants;
use super::graph::{Graph, Node};
use super::kind::Kind;
use super::view::View;
use crate::arena::Element;
use crate::steps::{Mask, Port, Side, Step};
use place::{Place, Store};

/// A function as steps whose spans have no places yet.
pub(crate) struct Lowered {
    pub(crate) steps: Vec<Step>,
    /// The length of each buffer, in slots.
    pub(crate) buffers: Vec<usize>,
    /// How many queries each distinct mask has.
    pub(crate) masks: Vec<usize>,
}

/// Lowers `graph` for `threads` threads; its constants join `constants`.
///
/// # Errors
/// [`BackendError::Unsupported`] naming the operation that cannot be run.
pub(crate) fn lower(
    graph: &Graph,
    blobs: &BlobFile,
    constants: &mut Constants,
    threads: usize,
) -> Result<Lowered, BackendError> {
    let mut lowering = Lowering {
        graph,
        blobs,
        constants,
        threads,
        steps: Vec::new(),
        buffers: Vec::new(),
        places: vec![None; graph.values.len()],
        last_use: last_uses(graph),
        node: 0,
        masks: Vec::new(),
    };
    for (port, &id) in graph.inputs.iter().enumerate() {
        lowering.places[id.index()] = Some(lowering.input(port, id)?);
        lowering.export(id)?;
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Some(node) = node {
            lowering.node = index;
            lowering.lower(node)?;
            lowering.export(node.output)?;
        }
    }
    let mut constants = graph.outputs.iter().filter(|&&id| graph.get(id).constant.is_some());
    constants.try_for_each(|&id| lowering.export(id))?;
    let Lowering { steps, buffers, masks, .. } = lowering;
    let buffers = buffers.into_iter().map(|buffer| buffer.slots).collect();
    Ok(Lowered { steps, buffers, masks: masks.into_iter().map(|mask| mask.queries).collect() })
}

/// For each value the last node that reads it or a view of it.
fn last_uses(graph: &Graph) -> Vec<usize> {
    let mut last = vec![0; graph.values.len()];
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        let Some(node) = node else { continue };
        let until = if node.kind.is_view() { last[node.output.index()].max(index) } else { index };
        for input in &node.inputs {
            last[input.index()] = last[input.index()].max(until);
        }
    }
    last
}

struct Lowering<'a> {
    graph: &'a Graph,
    blobs: &'a BlobFile,
    constants: &'a mut Constants,
    threads: usize,
    steps: Vec<Step>,
    buffers: Vec<Buffer>,
    places: Vec<Option<Place>>,
    last_use: Vec<usize>,
    /// The node being lowered.
    node: usize,
    masks: Vec<MaskUse>,
}

/// A mask that some attention reads.
struct MaskUse {
    ids: Vec<ValueId>,
    queries: usize,
    mask: Mask,
}

struct Buffer {
    slots: usize,
    /// The last node that reads it.
    last_use: usize,
}

impl Lowering<'_> {
    fn lower(&mut self, node: &Node) -> Result<(), BackendError> {
        match &node.kind {
            Kind::Unary(op) => self.unary(*op, node),
            Kind::Binary(op) => self.binary(*op, node),
            Kind::GatedSilu => self.gated_silu(node),
            Kind::Reduce { op, axes } => self.reduce(*op, axes, node),
            Kind::Softmax { axis } => self.softmax(*axis, node),
            Kind::RmsNorm { axis, epsilon } => self.rms_norm(*axis, *epsilon, node),
            Kind::Reshape => self.reshape(node),
            Kind::Transpose { perm } => self.view(node, |view| view.permuted(perm)),
            Kind::Slice { ranges } => {
                let dims = self.graph.dims(node.output);
                let dropped = "axes of 1 come and go without a copy";
                self.view(node, |view| view.sliced(ranges).reshaped(dims).expect(dropped))
            }
            Kind::Broadcast => {
                let dims = self.graph.dims(node.output);
                self.view(node, |view| view.broadcast(dims))
            }
            Kind::Cast => self.cast(node),
            Kind::Concat { axis } => self.concat(*axis, node),
            Kind::Reference(isolated) => self.reference(isolated, node),
            Kind::MatMul { transpose_x, transpose_y } => self.matmul([*transpose_x, *transpose_y], node),
            Kind::Projection(projection) => self.projection(projection, node),
            Kind::Rope { axis } => self.rope(*axis, node),
            Kind::ShortConv { axis } => self.short_conv(*axis, node),
            Kind::Attention(attention) => self.attention(attention, node),
        }
    }

    /// An operation, or a type or shape of it, that cannot be run.
    fn unsupported(&self, what: impl Into<String>) -> BackendError {
        let name = self.graph.nodes.get(self.node).and_then(Option::as_ref).map_or("", |node| &node.name);
        BackendError::Unsupported {
            place: format!("function `{}`, operation `{name}`", self.graph.function),
            what: what.into(),
        }
    }

    fn input(&self, port: usize, id: ValueId) -> Result<Place, BackendError> {
        let element = self.port_element("input", id)?;
        Ok(Place { store: Store::Input(port), element, view: View::dense(self.graph.dims(id)) })
    }

    /// What an input or output holds.
    fn port_element(&self, side: &str, id: ValueId) -> Result<Element, BackendError> {
        let value = self.graph.get(id);
        match value.ty.dtype {
            DType::F16 => Ok(Element::F16),
            DType::F32 => Ok(Element::F32),
            DType::I32 => Ok(Element::I32),
            _ => Err(BackendError::Unsupported {
                place: format!("function `{}`, {side} `{}`", self.graph.function, value.name),
                what: value.ty.to_string(),
            }),
        }
    }

    /// Copies `id` to every output it is.
    fn export(&mut self, id: ValueId) -> Result<(), BackendError> {
        let graph = self.graph;
        for port in (0..graph.outputs.len()).filter(|&port| graph.outputs[port] == id) {
            let element = self.port_element("output", id)?;
            // What is moved about is moved first, and converted in one run then.
            let mut from = self.place(id)?;
            if from.element == Element::F32 && matches!(from.store, Store::Arena(_)) {
                self.dense(id)?;
                from = self.place(id)?;
            }
            let to = Side { place: Port::Output(port), element, offset: 0 };
            self.copy_to(&from, to, &View::dense(graph.dims(id)));
        }
        Ok(())
    }
}
