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
mod rows;

use lone_mil::{BackendError, BlobFile, DType, Literal, ValueId};

use super::constants::{Constants, element};
use super::graph::{Graph, Node};
use super::kind::Kind;
use super::view::{View, runs};
use crate::arena::{BufferId, Element, Span};
use crate::steps::{Copy, Mask, Port, Side, Step};

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

/// Where a value is.
#[derive(Debug, Clone)]
struct Place {
    store: Store,
    element: Element,
    view: View,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Arena(BufferId),
    Input(usize),
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
        let value = self.graph.get(id);
        let element = match value.ty.dtype {
            DType::F16 => Element::F16,
            DType::F32 => Element::F32,
            DType::I32 => Element::I32,
            other => return Err(self.unsupported(format!("input `{}` of {other}", value.name))),
        };
        Ok(Place { store: Store::Input(port), element, view: View::dense(&value.ty.shape) })
    }

    /// Where `id` is; constants join the arena when they are first asked for.
    fn place(&mut self, id: ValueId) -> Result<Place, BackendError> {
        if let Some(place) = &self.places[id.index()] {
            return Ok(place.clone());
        }
        let literal = self.graph.get(id).constant.as_ref().expect("inputs and results have places");
        let place = self.constant(literal)?;
        self.places[id.index()] = Some(place.clone());
        Ok(place)
    }

    fn constant(&mut self, literal: &Literal) -> Result<Place, BackendError> {
        let element = element(literal.ty.dtype)
            .ok_or_else(|| self.unsupported(format!("arithmetic on {} constants", literal.ty.dtype)))?;
        let number = self.constants.add(literal).ok_or_else(|| self.unsupported("so large a constant"))?;
        let store = Store::Arena(BufferId::Constant(number));
        Ok(Place { store, element, view: View::dense(&literal.ty.shape) })
    }

    /// A new buffer for `elements` of `element`, read until node `last_use`.
    fn buffer(&mut self, element: Element, elements: usize, last_use: usize) -> Span {
        let slots = element.slots(elements);
        self.buffers.push(Buffer { slots, last_use });
        Span { buffer: BufferId::Value(self.buffers.len() - 1), start: 0, len: slots }
    }

    /// A new f32 buffer that holds the result of `node` densely.
    fn result(&mut self, node: &Node) -> Span {
        let dims = self.graph.dims(node.output).to_vec();
        self.result_in(node, &dims, |view| view)
    }

    /// A new f32 buffer `(dims)` of which the result of `node` is the `view`.
    fn result_in(&mut self, node: &Node, dims: &[usize], view: impl Fn(View) -> View) -> Span {
        let span = self.buffer(Element::F32, dims.iter().product(), self.last_use[node.output.index()]);
        self.put(node.output, span, view(View::dense(dims)));
        span
    }

    /// Says that `id` is the `view` of the f32 buffer `span` is all of.
    fn put(&mut self, id: ValueId, span: Span, view: View) {
        let place = Place { store: Store::Arena(span.buffer), element: Element::F32, view };
        self.places[id.index()] = Some(place);
    }

    /// The f32 elements of `id` in row-major order, copied there if they are not.
    fn dense(&mut self, id: ValueId) -> Result<Span, BackendError> {
        self.dense_in(id, Element::F32)
    }

    /// The elements of `id` as `element` in row-major order, copied there if they are not.
    fn dense_in(&mut self, id: ValueId, element: Element) -> Result<Span, BackendError> {
        let place = self.place(id)?;
        if let Some(span) = place.dense_span(element) {
            return Ok(span);
        }
        let (span, place) = self.copied(&place, element, self.last_use[id.index()]);
        self.places[id.index()] = Some(place);
        Ok(span)
    }

    /// Where `id` is as f32 in the arena, however it lies there.
    fn in_arena(&mut self, id: ValueId) -> Result<Place, BackendError> {
        let place = self.place(id)?;
        if place.element == Element::F32 && matches!(place.store, Store::Arena(_)) {
            return Ok(place);
        }
        self.dense(id)?;
        self.place(id)
    }

    /// The f32 elements of a `view` of `id` in row-major order, copied there if they are not.
    fn dense_view(&mut self, id: ValueId, view: impl Fn(&View) -> View) -> Result<Span, BackendError> {
        let mut place = self.in_arena(id)?;
        place.view = view(&place.view);
        let span = place.dense_span(Element::F32);
        Ok(span.unwrap_or_else(|| self.copied(&place, Element::F32, self.node).0))
    }

    /// A dense copy of what is at `from`, read until node `last_use`.
    fn copied(&mut self, from: &Place, element: Element, last_use: usize) -> (Span, Place) {
        let span = self.buffer(element, from.view.elements(), last_use);
        let view = View::dense(&from.view.dims);
        let to = Place { store: Store::Arena(span.buffer), element, view };
        self.copy(from, &to);
        (span, to)
    }

    fn copy(&mut self, from: &Place, to: &Place) {
        self.copy_to(
            from,
            Side { place: self.port(to), element: to.element, offset: to.view.offset },
            &to.view,
        );
    }

    fn copy_to(&mut self, from: &Place, to: Side, to_view: &View) {
        let axes = runs(&from.view.dims, [&from.view.strides, &to_view.strides]);
        let from = Side { place: self.port(from), element: from.element, offset: from.view.offset };
        self.steps.push(Copy { from, to, axes }.into());
    }

    fn port(&self, place: &Place) -> Port {
        match place.store {
            Store::Input(port) => Port::Input(port),
            Store::Arena(buffer) => Port::Arena(self.whole(buffer)),
        }
    }

    /// All of a buffer.
    fn whole(&self, buffer: BufferId) -> Span {
        let len = match buffer {
            BufferId::Constant(i) => self.constants.slots(i),
            BufferId::Value(i) => self.buffers[i].slots,
            BufferId::Nowhere => 0,
        };
        Span { buffer, start: 0, len }
    }

    /// Copies `id` to every output it is.
    fn export(&mut self, id: ValueId) -> Result<(), BackendError> {
        let graph = self.graph;
        for port in (0..graph.outputs.len()).filter(|&port| graph.outputs[port] == id) {
            let value = graph.get(id);
            let element = match value.ty.dtype {
                DType::F16 => Element::F16,
                DType::F32 => Element::F32,
                DType::I32 => Element::I32,
                other => return Err(self.unsupported(format!("output `{}` of {other}", value.name))),
            };
            // What is moved about is moved first, and converted in one run then.
            let mut from = self.place(id)?;
            if from.element == Element::F32 && matches!(from.store, Store::Arena(_)) {
                self.dense(id)?;
                from = self.place(id)?;
            }
            let to = Side { place: Port::Output(port), element, offset: 0 };
            self.copy_to(&from, to, &View::dense(&value.ty.shape));
        }
        Ok(())
    }
}

impl Place {
    /// Its elements, if they are `element`, one a slot of the arena, in row-major order.
    fn dense_span(&self, element: Element) -> Option<Span> {
        let Store::Arena(buffer) = self.store else { return None };
        let fits = self.element == element && self.view.is_dense();
        fits.then_some(Span { buffer, start: self.view.offset, len: self.view.elements() })
    }
}
