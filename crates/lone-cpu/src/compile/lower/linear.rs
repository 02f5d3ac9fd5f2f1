//! Products of matrices.

use std::sync::Arc;

use half::{bf16, f16};
use lone_mil::{BackendError, Literal, Payload, ValueId};

use super::rows::inverse;
use super::{Lowering, Place, Store};
use crate::Kernels;
use crate::arena::{Element, Span};
use crate::compile::graph::{Constant, Node};
use crate::compile::kind::{self, Kind};
use crate::compile::package_error;
use crate::compile::palettes::Palettes;
use crate::compile::view::{View, runs};
use crate::steps::{
    self, Layer, MatMul, Matrix, Numbers, OperandForm, PalettizedWeight, Part, Projection, ROWS_PER_BLOCK,
    Weight,
};

/// How many nodes ahead a projection looks for others that read what it reads.
const LOOK_AHEAD: usize = 64;

impl Lowering<'_> {
    /// ```text
    /// out (M, the other axes)   = residual, or bias, or nothing
    /// out                      += alpha * Σ w_i (M,K_i) x_i (K_i, the other axes)
    /// ```
    /// Those that read the same x, such as the gate and the up projection of a feed-forward, become one step.
    pub(super) fn projection(&mut self, kind: &kind::Projection, node: &Node) -> Result<(), BackendError> {
        if self.places[node.output.index()].is_some() {
            return Ok(());
        }
        let frame = Frame::of(kind.axis, self.graph.dims(node.output));
        let nodes = self.stacked(kind, node);
        let mut layers = vec![self.layer(kind, node, &frame)?];
        let x = layers[0].parts[0].x;
        for &(kind, node) in &nodes[1..] {
            let parts = vec![Part { weight: self.weight(node.inputs[1])?, x }];
            layers.push(Layer { rows: self.graph.dims(node.output)[kind.axis], alpha: kind.alpha, parts });
        }
        let mut added = node.inputs[2 * kind.parts..].iter();
        let bias = kind.bias.then(|| *added.next().expect("a biased projection has a bias"));
        let residual = kind.residual.then(|| *added.next().expect("a residual projection has a residual"));

        let out = match residual {
            Some(residual) => self.over(residual, &layers, &frame, node)?,
            None => self.stack(&nodes, &frame),
        };
        if let Some(bias) = bias {
            self.add_bias(bias, out, frame.columns, residual.is_some())?;
        }
        let accumulate = bias.is_some() || residual.is_some();
        let widest = layers.iter().flat_map(|layer| &layer.parts).map(|part| part.x.len).max().unwrap_or(0);
        let scratch_len = Kernels::matmul_scratch_len(widest / frame.columns, frame.columns);
        let scratch = (frame.columns > 1).then(|| self.buffer(Element::F32, scratch_len, self.node));
        self.steps.push(Projection { layers, columns: frame.columns, accumulate, out, scratch }.into());
        Ok(())
    }

    /// `node`, and the projections soon after it that can be computed along with it.
    fn stacked<'n>(&self, kind: &'n kind::Projection, node: &'n Node) -> Vec<(&'n kind::Projection, &'n Node)>
    where
        Self: 'n,
    {
        let graph = self.graph;
        let plain = |kind: &kind::Projection| kind.parts == 1 && !kind.bias && !kind.residual;
        let rows = |node: &Node| graph.dims(node.output)[kind.axis];
        let mut found = vec![(kind, node)];
        for other in graph.nodes.iter().skip(self.node + 1).take(LOOK_AHEAD).flatten() {
            let Kind::Projection(other_kind) = &other.kind else { continue };
            let alike = plain(kind) && plain(other_kind) && kind.axis == other_kind.axis;
            let whole_blocks = found.last().is_some_and(|(_, last)| rows(last) % ROWS_PER_BLOCK == 0);
            if alike && node.inputs[0] == other.inputs[0] && whole_blocks {
                found.push((other_kind, other));
            }
        }
        found
    }

    fn layer(&mut self, kind: &kind::Projection, node: &Node, frame: &Frame) -> Result<Layer, BackendError> {
        let mut parts = Vec::with_capacity(kind.parts);
        for pair in node.inputs[..2 * kind.parts].chunks_exact(2) {
            let x = self.dense_view(pair[0], |view| view.permuted(&frame.perm))?;
            parts.push(Part { weight: self.weight(pair[1])?, x });
        }
        Ok(Layer { rows: self.graph.dims(node.output)[kind.axis], alpha: kind.alpha, parts })
    }

    /// A new buffer with the results of `nodes` one above the other.
    fn stack(&mut self, nodes: &[(&kind::Projection, &Node)], frame: &Frame) -> Span {
        let dims = |node: &Node| frame.dims(self.graph.dims(node.output));
        let elements = nodes.iter().map(|(_, node)| dims(node).iter().product::<usize>()).sum();
        let views: Vec<View> = nodes.iter().map(|(_, node)| View::dense(&dims(node))).collect();
        let last_use = nodes.iter().map(|(_, node)| self.last_use[node.output.index()]).max().unwrap_or(0);
        let span = self.buffer(Element::F32, elements, last_use);
        let mut start = 0;
        for ((_, node), view) in nodes.iter().zip(views) {
            let rows = view.elements();
            self.put(node.output, span, View { offset: start, ..view }.permuted(&frame.back));
            start += rows;
        }
        span
    }

    /// The buffer of the result of `node` with `residual` in it: its own, if nobody else reads it any more, or a copy.
    fn over(
        &mut self,
        residual: ValueId,
        layers: &[Layer],
        frame: &Frame,
        node: &Node,
    ) -> Result<Span, BackendError> {
        let last_use = self.last_use[node.output.index()];
        let mut from = self.place(residual)?;
        from.view = from.view.permuted(&frame.perm);
        let own = |span: &Span| {
            let mut read = layers.iter().flat_map(|layer| &layer.parts);
            !read.any(|part| part.x.buffer == span.buffer)
                && *span == self.whole(span.buffer)
                && self.dies(span.buffer)
        };
        let span = match from.dense_span(Element::F32).filter(own) {
            Some(span) => {
                self.extend(span.buffer, last_use);
                span
            }
            None => self.copied(&from, Element::F32, last_use).0,
        };
        let dims = frame.dims(self.graph.dims(node.output));
        self.put(node.output, span, View::dense(&dims).permuted(&frame.back));
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
        match self.graph.get(id).constant.as_ref().expect("weights of projections are constants") {
            Constant::Literal(literal) => self.numbers(literal).map(Weight::F16),
            Constant::Palettes(palettes) => self.palettized(palettes),
        }
    }

    fn palettized(&self, palettes: &Palettes) -> Result<Weight, BackendError> {
        let Literal { ty, payload: Payload::Blob(offset) } = palettes.indices.clone() else {
            unreachable!("indices stay where they are mapped")
        };
        self.blobs.data(offset, &ty).map_err(package_error)?;
        let scales = palettes.scales.as_ref().map(|scales| self.numbers(scales)).transpose()?;
        let (bits, group_rows) = (palettes.bits, palettes.group_rows);
        let palettes = self.numbers(&palettes.palettes)?;
        let short = palettes.get(self.blobs).iter().all(|&entry| is_short(entry));
        Ok(Weight::Palettized(Arc::new(PalettizedWeight {
            bits,
            indices: (offset, ty),
            palettes,
            group_rows,
            short,
            scales,
        })))
    }

    /// Fp16 numbers, where they are mapped if they are.
    fn numbers(&self, literal: &Literal) -> Result<Numbers, BackendError> {
        if let Payload::Blob(offset) = literal.payload {
            self.blobs.f16s(offset, &literal.ty).map_err(package_error)?;
            return Ok(Numbers::Mapped { offset, ty: literal.ty.clone() });
        }
        let numbers =
            literal.to_floats().ok_or_else(|| self.unsupported(format!("weights of {}", literal.ty)))?;
        Ok(Numbers::Held(numbers.into_iter().map(f16::from_f32).collect()))
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

/// How a tensor becomes a matrix with one axis as its rows.
struct Frame {
    /// The order of axes that puts it first, and the one that puts it back.
    perm: Vec<usize>,
    back: Vec<usize>,
    /// Elements of all other axes.
    columns: usize,
}

impl Frame {
    fn of(axis: usize, dims: &[usize]) -> Self {
        let mut perm = vec![axis];
        perm.extend((0..dims.len()).filter(|&other| other != axis));
        let columns = perm[1..].iter().map(|&axis| dims[axis]).product();
        Frame { back: inverse(&perm), perm, columns }
    }

    /// `dims` in the order of the matrix.
    fn dims(&self, dims: &[usize]) -> Vec<usize> {
        self.perm.iter().map(|&axis| dims[axis]).collect()
    }
}

/// Whether a number is a bf16 number too.
fn is_short(number: f16) -> bool {
    let number = number.to_f32();
    bf16::from_f32(number).to_f32() == number
}
