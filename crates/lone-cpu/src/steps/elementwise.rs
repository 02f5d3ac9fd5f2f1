//! One element of the result from one element of each argument.

use std::fmt;

use super::{Access, Context, Run};
use crate::Kernels;
use crate::arena::{BufferId, Reads, Span};
use crate::compile::kind;
use crate::kernels;

/// Elements of output from which on rows are spread over the pool.
const PARALLEL_ELEMENTS: usize = 1 << 15;

/// `out (P,C,S) = op(a, b)`.
pub(crate) struct Binary {
    pub(crate) op: kind::Binary,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) out: Span,
    /// P
    pub(crate) planes: usize,
    /// S
    pub(crate) columns: usize,
}

/// One side of a [`Binary`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Operand {
    pub(crate) form: OperandForm,
    /// What all planes together read; the output itself if both are the same.
    pub(crate) span: Span,
    /// From what one plane reads to what the next reads, in elements.
    pub(crate) plane_stride: usize,
}

/// How an operand is laid over a plane `(C,S)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OperandForm {
    /// `(C,S)`
    Tensor,
    /// `(C,1)`
    PerChannel,
    /// `(1,S)`
    PerColumn,
    /// Just this number.
    Number(f32),
}

impl Run for Binary {
    const NAME: &'static str = "binary";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let kernels = context.kernels;
        let ([out], reads) = context.arena.borrow([self.out]);
        let plane_len = self.out.len / self.planes;
        for (plane, out) in out.chunks_exact_mut(plane_len).enumerate() {
            if out.len() < PARALLEL_ELEMENTS {
                self.rows(kernels, &reads, plane, 0, out);
                continue;
            }
            let rows = out.len() / self.columns;
            let chunk = rows.div_ceil(4 * context.pool.threads());
            context.pool.for_each_chunk(out, chunk * self.columns, |index, out| {
                self.rows(kernels, &reads, plane, index * chunk, out);
            });
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        for operand in [&mut self.a, &mut self.b] {
            visit(&mut operand.span, Access::Read);
        }
        visit(&mut self.out, Access::Write);
    }
}

impl Binary {
    /// The rows of `plane` from `row` on that `out` has room for.
    fn rows(&self, kernels: Kernels, reads: &Reads<'_, 1>, plane: usize, row: usize, out: &mut [f32]) {
        let side = |operand: &Operand| operand.rows(self, reads, plane, row, out.len());
        let (a, b) = (side(&self.a), side(&self.b));
        match kernel(self.op) {
            Some(op) => kernels.binary(op, a, b, self.columns, out),
            None => {
                for (i, out) in out.iter_mut().enumerate() {
                    let number = |operand| element(operand, i, self.columns, *out);
                    *out = self.op.apply(number(a), number(b));
                }
            }
        }
    }
}

impl Operand {
    /// The same number everywhere.
    pub(crate) fn number(number: f32) -> Self {
        let span = Span { buffer: BufferId::Nowhere, start: 0, len: 0 };
        Operand { form: OperandForm::Number(number), span, plane_stride: 0 }
    }

    fn rows<'a>(
        &self,
        step: &Binary,
        reads: &Reads<'a, 1>,
        plane: usize,
        row: usize,
        len: usize,
    ) -> kernels::Operand<'a> {
        if let OperandForm::Number(number) = self.form {
            return kernels::Operand::Scalar(number);
        }
        if self.span == step.out {
            return kernels::Operand::Output;
        }
        let data = &reads.f32s(self.span)[plane * self.plane_stride..];
        match self.form {
            OperandForm::Tensor => kernels::Operand::Tensor(&data[row * step.columns..][..len]),
            OperandForm::PerChannel => kernels::Operand::PerChannel(&data[row..][..len / step.columns]),
            OperandForm::PerColumn => kernels::Operand::PerColumn(&data[..step.columns]),
            OperandForm::Number(number) => kernels::Operand::Scalar(number),
        }
    }
}

fn element(operand: kernels::Operand<'_>, i: usize, columns: usize, current: f32) -> f32 {
    match operand {
        kernels::Operand::Tensor(data) => data[i],
        kernels::Operand::Output => current,
        kernels::Operand::PerChannel(data) => data[i / columns],
        kernels::Operand::PerColumn(data) => data[i % columns],
        kernels::Operand::Scalar(number) => number,
    }
}

/// The kernel for an operation, for those that have one.
fn kernel(op: kind::Binary) -> Option<kernels::Binary> {
    match op {
        kind::Binary::Add => Some(kernels::Binary::Add),
        kind::Binary::Div => Some(kernels::Binary::Div),
        kind::Binary::Max => Some(kernels::Binary::Max),
        kind::Binary::Min => Some(kernels::Binary::Min),
        kind::Binary::Mul => Some(kernels::Binary::Mul),
        kind::Binary::Sub => Some(kernels::Binary::Sub),
        kind::Binary::FloorDiv | kind::Binary::Mod | kind::Binary::Pow => None,
    }
}

/// `out[i] = op(x[i])`.
pub(crate) struct Unary {
    pub(crate) op: kind::Unary,
    pub(crate) x: Span,
    pub(crate) out: Span,
}

impl Run for Unary {
    const NAME: &'static str = "unary";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        let x = reads.f32s(self.x);
        match self.op {
            kind::Unary::Exp => context.kernels.exp(x, out),
            kind::Unary::Sigmoid => context.kernels.sigmoid(x, out),
            op => {
                for (x, out) in x.iter().zip(out) {
                    *out = op.apply(*x);
                }
            }
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.x, Access::Read);
        visit(&mut self.out, Access::Write);
    }
}

/// `out = gate / (1 + e^-gate) * up`.
pub(crate) struct GatedSilu {
    pub(crate) gate: Span,
    pub(crate) up: Span,
    pub(crate) out: Span,
}

impl Run for GatedSilu {
    const NAME: &'static str = "gated_silu";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        context.kernels.gated_silu(context.pool, reads.f32s(self.gate), reads.f32s(self.up), out);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.gate, Access::Read);
        visit(&mut self.up, Access::Read);
        visit(&mut self.out, Access::Write);
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = self.op;
        write!(f, "{} = {op}({}, {}) in {} x {}", self.out, self.a, self.b, self.planes, self.columns)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            OperandForm::Tensor => write!(f, "{}", self.span),
            OperandForm::PerChannel => write!(f, "per channel {}", self.span),
            OperandForm::PerColumn => write!(f, "per column {}", self.span),
            OperandForm::Number(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for Unary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}({})", self.out, self.op, self.x)
    }
}

impl fmt::Display for GatedSilu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = silu({}) * {}", self.out, self.gate, self.up)
    }
}
