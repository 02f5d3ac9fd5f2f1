//! Where values are, and bringing them to where a step wants them.

use lone_mil::{BackendError, Literal, ValueId};

use super::{Buffer, Lowering};
use crate::arena::{BufferId, Element, Span};
use crate::compile::constants::element;
use crate::compile::graph::{Constant, Node};
use crate::compile::package_error;
use crate::compile::view::{View, runs};
use crate::steps::{Copy, Port, Side};

/// Where a value is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) element: Element,
    pub(super) view: View,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Arena(BufferId),
    Input(usize),
}

impl Lowering<'_> {
    /// Where `id` is; constants join the arena when they are first asked for.
    pub(super) fn place(&mut self, id: ValueId) -> Result<Place, BackendError> {
        if let Some(place) = &self.places[id.index()] {
            return Ok(place.clone());
        }
        let place = match self.graph.get(id).constant.as_ref().expect("inputs and results have places") {
            Constant::Literal(literal) => self.constant(literal)?,
            Constant::Palettes(palettes) => {
                self.constant(&palettes.expanded(self.blobs).map_err(package_error)?)?
            }
        };
        self.places[id.index()] = Some(place.clone());
        Ok(place)
    }

    pub(super) fn constant(&mut self, literal: &Literal) -> Result<Place, BackendError> {
        let element = element(literal.ty.dtype)
            .ok_or_else(|| self.unsupported(format!("arithmetic on {} constants", literal.ty.dtype)))?;
        let number = self.constants.add(literal).ok_or_else(|| self.unsupported("so large a constant"))?;
        let store = Store::Arena(BufferId::Constant(number));
        Ok(Place { store, element, view: View::dense(&literal.ty.shape) })
    }

    /// A new buffer for `elements` of `element`, read until node `last_use`.
    pub(super) fn buffer(&mut self, element: Element, elements: usize, last_use: usize) -> Span {
        let slots = element.slots(elements);
        self.buffers.push(Buffer { slots, last_use });
        Span { buffer: BufferId::Value(self.buffers.len() - 1), start: 0, len: slots }
    }

    /// A new f32 buffer that holds the result of `node` densely.
    pub(super) fn result(&mut self, node: &Node) -> Span {
        let view = View::dense(self.graph.dims(node.output));
        let span = self.buffer(Element::F32, view.elements(), self.last_use[node.output.index()]);
        self.put(node.output, span, view);
        span
    }

    /// Says that `id` is the `view` of the f32 buffer `span` is all of.
    pub(super) fn put(&mut self, id: ValueId, span: Span, view: View) {
        let place = Place { store: Store::Arena(span.buffer), element: Element::F32, view };
        self.places[id.index()] = Some(place);
    }

    /// The f32 elements of `id` in row-major order, copied there if they are not.
    pub(super) fn dense(&mut self, id: ValueId) -> Result<Span, BackendError> {
        self.dense_in(id, Element::F32)
    }

    /// The elements of `id` as `element` in row-major order, copied there if they are not.
    pub(super) fn dense_in(&mut self, id: ValueId, element: Element) -> Result<Span, BackendError> {
        let place = self.place(id)?;
        if let Some(span) = place.dense_span(element) {
            return Ok(span);
        }
        let (span, place) = self.copied(&place, element, self.last_use[id.index()]);
        self.places[id.index()] = Some(place);
        Ok(span)
    }

    /// Where `id` is as f32 in the arena, however it lies there.
    pub(super) fn in_arena(&mut self, id: ValueId) -> Result<Place, BackendError> {
        let place = self.place(id)?;
        if place.element == Element::F32 && matches!(place.store, Store::Arena(_)) {
            return Ok(place);
        }
        self.dense(id)?;
        self.place(id)
    }

    /// The f32 elements of a `view` of `id` in row-major order, copied there if they are not.
    pub(super) fn dense_view(
        &mut self,
        id: ValueId,
        view: impl Fn(&View) -> View,
    ) -> Result<Span, BackendError> {
        let mut place = self.in_arena(id)?;
        place.view = view(&place.view);
        let span = place.dense_span(Element::F32);
        Ok(span.unwrap_or_else(|| self.copied(&place, Element::F32, self.node).0))
    }

    /// A dense copy of what is at `from`, read until node `last_use`.
    pub(super) fn copied(&mut self, from: &Place, element: Element, last_use: usize) -> (Span, Place) {
        let span = self.buffer(element, from.view.elements(), last_use);
        let view = View::dense(&from.view.dims);
        let to = Place { store: Store::Arena(span.buffer), element, view };
        self.copy(from, &to);
        (span, to)
    }

    pub(super) fn copy(&mut self, from: &Place, to: &Place) {
        self.copy_to(
            from,
            Side { place: self.port(to), element: to.element, offset: to.view.offset },
            &to.view,
        );
    }

    pub(super) fn copy_to(&mut self, from: &Place, to: Side, to_view: &View) {
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
    pub(super) fn whole(&self, buffer: BufferId) -> Span {
        let len = match buffer {
            BufferId::Constant(i) => self.constants.slots(i),
            BufferId::Value(i) => self.buffers[i].slots,
            BufferId::Nowhere => 0,
        };
        Span { buffer, start: 0, len }
    }
}

impl Place {
    /// Its elements, if they are `element`, one a slot of the arena, in row-major order.
    pub(super) fn dense_span(&self, element: Element) -> Option<Span> {
        let Store::Arena(buffer) = self.store else { return None };
        let fits = self.element == element && self.view.is_dense();
        fits.then_some(Span { buffer, start: self.view.offset, len: self.view.elements() })
    }
}
