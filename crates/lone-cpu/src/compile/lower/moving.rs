//! Operations that move elements: most of them only change the view.

use std::sync::Arc;

use lone_mil::{BackendError, ValueId};

use super::{Lowering, Place, Store};
use crate::arena::Element;
use crate::compile::constants::element;
use crate::compile::graph::Node;
use crate::compile::kind::Range;
use crate::compile::reference::Isolated;
use crate::compile::view::View;
use crate::steps::Reference;

impl Lowering<'_> {
    /// The result is a view of the input.
    pub(super) fn view(&mut self, node: &Node, view: impl Fn(&View) -> View) -> Result<(), BackendError> {
        let mut place = self.place(node.inputs[0])?;
        place.view = view(&place.view);
        self.places[node.output.index()] = Some(place);
        Ok(())
    }

    pub(super) fn reshape(&mut self, node: &Node) -> Result<(), BackendError> {
        let dims = self.graph.dims(node.output);
        let mut place = self.place(node.inputs[0])?;
        if let Some(view) = place.view.reshaped(dims) {
            place.view = view;
        } else {
            place = self.copied(&place, place.computed(), self.last_use[node.output.index()]).1;
            place.view = View::dense(dims);
        }
        self.places[node.output.index()] = Some(place);
        Ok(())
    }

    pub(super) fn cast(&mut self, node: &Node) -> Result<(), BackendError> {
        let mut place = self.place(node.inputs[0])?;
        let to = self.element(node.output)?;
        if place.computed() != to {
            place = self.copied(&place, to, self.last_use[node.output.index()]).1;
        }
        self.places[node.output.index()] = Some(place);
        Ok(())
    }

    pub(super) fn concat(&mut self, axis: usize, node: &Node) -> Result<(), BackendError> {
        let element = self.element(node.output)?;
        let view = View::dense(self.graph.dims(node.output));
        let span = self.buffer(element, view.elements(), self.last_use[node.output.index()]);
        let whole = Place { store: Store::Arena(span.buffer), element, view };
        let mut start = 0;
        for &input in &node.inputs {
            // An input is converted as a whole first, which is faster than in the short runs of a part.
            let from = if element == Element::F32 { self.in_arena(input)? } else { self.place(input)? };
            let len = from.view.dims[axis];
            let mut part = whole.clone();
            part.view = whole.view.sliced(&Range::along(&whole.view.dims, axis, start, len));
            self.copy(&from, &part);
            start += len;
        }
        self.places[node.output.index()] = Some(whole);
        Ok(())
    }

    /// By the reference interpreter.
    pub(super) fn reference(&mut self, isolated: &Arc<Isolated>, node: &Node) -> Result<(), BackendError> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for &input in &node.inputs {
            let element = self.element(input)?;
            inputs.push(self.dense_in(input, element)?);
        }
        let (element, dims) = (self.element(node.output)?, self.graph.dims(node.output));
        let view = View::dense(dims);
        let out = self.buffer(element, view.elements(), self.last_use[node.output.index()]);
        let place = Place { store: Store::Arena(out.buffer), element, view };
        self.places[node.output.index()] = Some(place);
        self.steps.push(Reference { isolated: Arc::clone(isolated), inputs, out }.into());
        Ok(())
    }

    /// What `id` is computed in.
    pub(super) fn element(&self, id: ValueId) -> Result<Element, BackendError> {
        let dtype = self.graph.get(id).ty.dtype;
        element(dtype).ok_or_else(|| self.unsupported(format!("a {dtype} tensor")))
    }
}

impl Place {
    /// What its values are computed in.
    pub(super) fn computed(&self) -> Element {
        match self.element {
            Element::F16 | Element::F32 => Element::F32,
            Element::I32 => Element::I32,
        }
    }
}
