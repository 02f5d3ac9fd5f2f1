//! Products of matrices.

use half::f16;
use lone_mil::{BackendError, Payload, ValueId};

use super::rows::inverse;
use super::{Lowering, Place, Store};
use crate::Kernels;
use crate::arena::{Element, Span};
use crate::compile::constants::held;
use crate::compile::graph::Node;
use crate::compile::kind;
use crate::compile::view::{View, runs};
use crate::steps::{self, MatMul, Matrix, OperandForm, Part, Projection, Weight};

impl Lowering<'_> {
    /// ```text
    /// out (M, the other axes)   = residual, or bias, or nothing
    /// out                      += alpha * Σ w_i (M,K_i) x_i (K_i, the other axes)
    /// ```
    pub(super) fn projection(&mut self, kind: &kind::Projection, node: &Node) -> Result<(), BackendError> {
        let dims = self.graph.dims(node.output);
        let mut perm = vec![kind.axis];
        perm.extend((0..dims.len()).filter(|&axis| axis != kind.axis));
        let columns: usize = perm[1..].iter().map(|&axis| dims[axis]).product();
        let mut parts = Vec::with_capacity(kind.parts);
        for pair in node.inputs[..2 * kind.parts].chunks_exact(2) {
            let x = self.dense_view(pair[0], |view| view.permuted(&perm))?;
            parts.push(Part { weight: self.weight(pair[1])?, x });
        }
        let mut added = node.inputs[2 * kind.parts..].iter();
        let bias = kind.bias.then(|| *added.next().expect("a biased projection has a bias"));
        let residual = kind.residual.then(|| *added.next().expect("a residual projection has a residual"));
        let widest = parts.iter().map(|part| part.x.len / columns).max().unwrap_or(0);

        let out = self.projected(residual, &perm, &parts, node)?;
        if let Some(bias) = bias {
            self.add_bias(bias, out, columns, residual.is_some())?;
        }
        let accumulate = bias.is_some() || residual.is_some();
        let scratch_len = Kernels::matmul_scratch_len(widest, columns);
        let scratch = (columns > 1).then(|| self.buffer(Element::F32, scratch_len, self.node));
        let alpha = kind.alpha;
        self.steps.push(Projection { parts, columns, alpha, accumulate, out, scratch }.into());
        Ok(())
    }

    /// The buffer of the result, with `residual` in it: its own, if nobody else reads it any more, or a copy.
    fn projected(
        &mut self,
        residual: Option<ValueId>,
        perm: &[usize],
        parts: &[Part],
        node: &Node,
    ) -> Result<Span, BackendError> {
        let last_use = self.last_use[node.output.index()];
        let dims: Vec<usize> = perm.iter().map(|&axis| self.graph.dims(node.output)[axis]).collect();
        let back = inverse(perm);
        let Some(residual) = residual else {
            let span = self.buffer(Element::F32, dims.iter().product(), last_use);
            self.put(node.output, span, View::dense(&dims).permuted(&back));
            return Ok(span);
        };
        let mut from = self.place(residual)?;
        from.view = from.view.permuted(perm);
        let own = |span: &Span| {
            let read = parts.iter().any(|part| part.x.buffer == span.buffer);
            !read && *span == self.whole(span.buffer) && self.dies(span.buffer)
        };
        let span = match from.dense_span(Element::F32).filter(own) {
            Some(span) => {
                self.extend(span.buffer, last_use);
                span
            }
            None => self.copied(&from, Element::F32, last_use).0,
        };
        self.put(node.output, span, View::dense(&dims).permuted(&back));
        Ok(span)
    }

    /// `out (M,S) = bias (M)`, or `out += bias`.
    fn add_bias(&mut self, bias: ValueId, out: Span, columns: usize, add: bool) -> Result<(), BackendError> {
        let span = self.dense(bias)?;
        let bias = steps::Operand { form: OperandForm::PerChannel, span, plane_stride: 0 };
        let (op, other) = match add {
            true => {
                (kind::Binary::Add, steps::Operand { form: OperandForm::Tensor, span: out, plane_stride: 0 })
            }
            false => (kind::Binary::Mul, steps::Operand::number(1.0)),
        };
        self.steps.push(steps::Binary { op, a: bias, b: other, out, planes: 1, columns }.into());
        Ok(())
    }

    fn weight(&self, id: ValueId) -> Result<Weight, BackendError> {
        let literal = self.graph.get(id).constant.as_ref().expect("weights of projections are constants");
        if let Payload::Blob(offset) = literal.payload {
            let weight = Weight::Mapped { offset, ty: literal.ty.clone() };
            self.blobs.f16s(offset, &literal.ty).map_err(|error| BackendError::Package(Box::new(error)))?;
            return Ok(weight);
        }
        let numbers = held(literal, self.blobs).ok().and_then(|literal| literal.to_floats());
        let numbers = numbers.ok_or_else(|| self.unsupported(format!("weights of {}", literal.ty)))?;
        Ok(Weight::Held(numbers.into_iter().map(f16::from_f32).collect()))
    }

    pub(super) fn matmul(&mut self, transposed: [bool; 2], node: &Node) -> Result<(), BackendError> {
        let dims = self.graph.dims(node.output);
        let (lead, rows, columns) = (&dims[..dims.len() - 2], dims[dims.len() - 2], dims[dims.len() - 1]);
        let x = self.matrix(node.inputs[0], transposed[0], lead)?;
        let y = self.matrix(node.inputs[1], transposed[1], lead)?;
        let (front, inner) = (lead.len(), x.view.dims[lead.len() + 1]);
        let batch = runs(lead, [&x.view.strides[..front], &y.view.strides[..front]]);
        let side = |place: &Place| {
            let Store::Arena(buffer) = place.store else { unreachable!("matrices are f32 of the arena") };
            let strides = [place.view.strides[front], place.view.strides[front + 1]];
            Matrix { span: self.whole(buffer), offset: place.view.offset, strides }
        };
        let (x, y) = (side(&x), side(&y));
        let out = self.result(node);
        self.steps.push(MatMul { x, y, out, batch, columns, rows, inner }.into());
        Ok(())
    }

    /// A stack of matrices in the arena, broadcast to `lead` axes in front.
    fn matrix(&mut self, id: ValueId, transposed: bool, lead: &[usize]) -> Result<Place, BackendError> {
        let mut place = self.in_arena(id)?;
        let mut perm: Vec<usize> = (0..place.view.dims.len()).collect();
        let last = perm.len() - 1;
        if transposed {
            perm.swap(last - 1, last);
        }
        let view = place.view.permuted(&perm);
        let dims = [lead, &view.dims[last - 1..]].concat();
        place.view = view.broadcast(&dims);
        Ok(place)
    }
}
