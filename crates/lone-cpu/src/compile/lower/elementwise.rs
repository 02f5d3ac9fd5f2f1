//! Elementwise operations, with broadcasts as kernels know them.

use lone_mil::{BackendError, ValueId};

use super::{Lowering, Place, Store};
use crate::arena::{BufferId, Element, Span};
use crate::compile::graph::Node;
use crate::compile::kind;
use crate::compile::view::{Run, View, runs};
use crate::steps::{Binary, GatedSilu, Operand, OperandForm, Unary};

impl Lowering<'_> {
    pub(super) fn unary(&mut self, op: kind::Unary, node: &Node) -> Result<(), BackendError> {
        let x = self.dense(node.inputs[0])?;
        let out = self.result(node);
        self.steps.push(Unary { op, x, out }.into());
        Ok(())
    }

    pub(super) fn gated_silu(&mut self, node: &Node) -> Result<(), BackendError> {
        let (gate, up) = (self.dense(node.inputs[0])?, self.dense(node.inputs[1])?);
        let out = self.result(node);
        self.steps.push(GatedSilu { gate, up, out }.into());
        Ok(())
    }

    pub(super) fn binary(&mut self, op: kind::Binary, node: &Node) -> Result<(), BackendError> {
        let dims = self.graph.dims(node.output);
        let mut arguments = [self.argument(node.inputs[0], dims)?, self.argument(node.inputs[1], dims)?];
        let (layout, [a, b]) = loop {
            let layout = Layout::of(dims, arguments.each_ref().map(|argument| &argument.view));
            let operands = [0, 1].map(|side| layout.operand(&arguments[side], side));
            if let [Some(a), Some(b)] = operands {
                break (layout, [a, b]);
            }
            // A layout that no kernel knows: write an operand out.
            let strange = |&side: &usize| operands[side].is_none() && !arguments[side].view.is_dense();
            let side = (0..2).find(strange).expect("dense operands fit every layout");
            arguments[side] = self.written_out(&arguments[side])?;
        };
        let out = match self.reusable(&[a, b], View::dense(dims).elements()) {
            Some(span) => {
                self.extend(span.buffer, self.last_use[node.output.index()]);
                self.put(node.output, span, View::dense(dims));
                span
            }
            None => self.result(node),
        };
        let [planes, _, columns] = layout.extents;
        self.steps.push(Binary { op, a, b, out, planes, columns }.into());
        Ok(())
    }

    /// One argument, broadcast to `dims`: a number, or f32 in the arena.
    fn argument(&mut self, id: ValueId, dims: &[usize]) -> Result<Argument, BackendError> {
        if let Some(number) = self.graph.number(id) {
            return Ok(Argument { source: Source::Number(number), view: View::dense(&[]).broadcast(dims) });
        }
        let place = self.in_arena(id)?;
        Ok(Argument::arena(&place, place.view.broadcast(dims)))
    }

    fn written_out(&mut self, argument: &Argument) -> Result<Argument, BackendError> {
        let Source::Arena(buffer) = argument.source else { unreachable!("numbers fit every layout") };
        let from = Place { store: Store::Arena(buffer), element: Element::F32, view: argument.view.clone() };
        let (_, place) = self.copied(&from, Element::F32, self.node);
        Ok(Argument::arena(&place, place.view.clone()))
    }

    /// A buffer that one operand is all of and nobody reads later, for the result to be written over it.
    fn reusable(&self, operands: &[Operand; 2], elements: usize) -> Option<Span> {
        let [a, b] = operands;
        [(a, b), (b, a)].into_iter().find_map(|(own, other)| {
            let whole = own.form == OperandForm::Tensor && own.span == self.whole(own.span.buffer);
            let apart = other == own || other.span.buffer != own.span.buffer;
            (whole && apart && own.span.len == elements && self.dies(own.span.buffer)).then_some(own.span)
        })
    }

    /// Whether nobody reads `buffer` after the node being lowered.
    pub(super) fn dies(&self, buffer: BufferId) -> bool {
        match buffer {
            BufferId::Value(index) => self.buffers[index].last_use <= self.node,
            BufferId::Constant(_) | BufferId::Nowhere => false,
        }
    }

    /// Keeps a buffer until node `last_use`.
    pub(super) fn extend(&mut self, buffer: BufferId, last_use: usize) {
        if let BufferId::Value(index) = buffer {
            self.buffers[index].last_use = last_use;
        }
    }
}

/// An argument of a binary operation.
struct Argument {
    source: Source,
    view: View,
}

#[derive(Clone, Copy)]
enum Source {
    Number(f32),
    Arena(BufferId),
}

impl Argument {
    fn arena(place: &Place, view: View) -> Self {
        let Store::Arena(buffer) = place.store else { unreachable!("inputs are copied first") };
        Argument { source: Source::Arena(buffer), view }
    }
}

/// The axes of a binary operation as planes, channels and columns.
struct Layout {
    /// P, C, S
    extents: [usize; 3],
    /// Strides of a, b and the result along them; `None` if it takes more axes.
    axes: Option<[Run<3>; 3]>,
}

impl Layout {
    fn of(dims: &[usize], [a, b]: [&View; 2]) -> Self {
        let runs = runs(dims, [&a.strides, &b.strides, &View::dense(dims).strides]);
        let mut axes = [Run { len: 1, strides: [0; 3] }; 3];
        if let Some(missing) = axes.len().checked_sub(runs.len()) {
            axes[missing..].copy_from_slice(&runs);
            return Layout { extents: axes.map(|axis| axis.len), axes: Some(axes) };
        }
        Layout { extents: [1; 3], axes: None }
    }

    /// An argument, the first or the second, if it is laid out in a way that kernels know.
    fn operand(&self, argument: &Argument, side: usize) -> Option<Operand> {
        let buffer = match argument.source {
            Source::Arena(buffer) => buffer,
            Source::Number(number) => return Some(Operand::number(number)),
        };
        let axes = self.axes.as_ref()?;
        let [planes, channels, columns] = self.extents;
        let is =
            |axis: usize, stride: usize| axes[axis].len == 1 || axes[axis].strides[side] == stride as isize;
        let (form, plane_len) = if is(1, columns) && is(2, 1) {
            (OperandForm::Tensor, channels * columns)
        } else if is(1, 1) && is(2, 0) {
            (OperandForm::PerChannel, channels)
        } else if is(1, 0) && is(2, 1) {
            (OperandForm::PerColumn, columns)
        } else {
            return None;
        };
        let plane_stride = usize::try_from(axes[0].strides[side]).ok()?;
        let span = Span { buffer, start: argument.view.offset, len: plane_stride * (planes - 1) + plane_len };
        Some(Operand { form, span, plane_stride })
    }
}
