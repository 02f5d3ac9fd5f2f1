//! Attention over caches that are read where they are.

use std::fmt;

use half::f16;
use lone_mil::TensorRef;

use super::{Access, Context, Run};
use crate::arena::{Reads, Span};
use crate::kernels::{self, PastSegment};

/// The most inputs a layer's past may be split into: 2^20 rows, in inputs of 16 384.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// `out (H,S,d) = softmax(query (H,S,d) keys^T + mask) values`, keys and values being those of the past and
/// then the new ones `(G,S,d)`.
pub(crate) struct Attention {
    pub(crate) heads: usize,
    pub(crate) groups: usize,
    pub(crate) head_dim: usize,
    pub(crate) query: Span,
    pub(crate) past: Vec<PastRows>,
    pub(crate) new_keys: Span,
    pub(crate) new_values: Span,
    pub(crate) mask: Mask,
    /// Index of what a [`ReadMask`] has found in `mask`.
    pub(crate) visible: usize,
    pub(crate) out: Span,
    pub(crate) scratch: Span,
}

/// Inputs `(G,rows,d)` f16, by port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PastRows {
    pub(crate) keys: usize,
    pub(crate) values: usize,
    pub(crate) rows: usize,
}

/// An additive mask `(S,T+S)` f16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// An input, by port.
    Input(usize),
    /// `len` f16 of the arena.
    Arena { span: Span, len: usize },
}

impl Mask {
    fn f16s<'a, const N: usize>(&self, inputs: &[TensorRef<'a>], reads: &Reads<'a, N>) -> &'a [f16] {
        match *self {
            Mask::Input(port) => input_f16s(inputs, port),
            Mask::Arena { span, len } => reads.f16s(span, len),
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        if let Mask::Arena { span, .. } = self {
            visit(span, Access::Read);
        }
    }
}

fn input_f16s<'a>(inputs: &[TensorRef<'a>], port: usize) -> &'a [f16] {
    match inputs[port] {
        TensorRef::F16(data) => data,
        TensorRef::F32(_) | TensorRef::I32(_) => unreachable!("only f16 inputs are read in place"),
    }
}

impl Run for Attention {
    const NAME: &'static str = "attention";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let inputs = context.inputs;
        let mut segments = [PastSegment { keys: &[], values: &[], rows: 0 }; MAX_SEGMENTS];
        for (segment, past) in segments.iter_mut().zip(&self.past) {
            let (keys, values) = (input_f16s(inputs, past.keys), input_f16s(inputs, past.values));
            *segment = PastSegment { keys, values, rows: past.rows };
        }
        let ([out, scratch], reads) = context.arena.borrow([self.out, self.scratch]);
        let attention = kernels::Attention {
            heads: self.heads,
            groups: self.groups,
            head_dim: self.head_dim,
            scale: 1.0,
            queries: reads.f32s(self.query),
            past: &segments[..self.past.len()],
            new_keys: reads.f32s(self.new_keys),
            new_values: reads.f32s(self.new_values),
            mask: self.mask.f16s(inputs, &reads),
            visible: &context.visible[self.visible],
        };
        context.kernels.attention(context.pool, &attention, out, scratch);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        for span in [&mut self.query, &mut self.new_keys, &mut self.new_values] {
            visit(span, Access::Read);
        }
        self.mask.visit(visit);
        visit(&mut self.out, Access::Write);
        visit(&mut self.scratch, Access::Write);
    }

    fn outside_bytes(&self) -> usize {
        let rows: usize = self.past.iter().map(|past| past.rows).sum();
        2 * self.groups * rows * self.head_dim * size_of::<f16>()
    }
}

/// Finds the keys that a mask leaves visible, once for all layers that share it.
pub(crate) struct ReadMask {
    pub(crate) mask: Mask,
    /// T + S
    pub(crate) keys: usize,
    /// S
    pub(crate) queries: usize,
    pub(crate) visible: usize,
}

impl Run for ReadMask {
    const NAME: &'static str = "read_mask";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([], reads) = context.arena.borrow([]);
        let mask = self.mask.f16s(context.inputs, &reads);
        context.visible[self.visible].read(mask, self.keys);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        self.mask.visit(visit);
    }

    fn outside_bytes(&self) -> usize {
        self.keys * self.queries * size_of::<f16>()
    }
}

impl fmt::Display for Attention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attention { out, query, new_keys, new_values, mask, head_dim, .. } = self;
        write!(f, "{out} = {query} x {head_dim} over")?;
        for past in &self.past {
            write!(f, " in{} in{}", past.keys, past.values)?;
        }
        write!(f, " {new_keys} {new_values} under {mask}")
    }
}

impl fmt::Display for ReadMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} x {}", self.mask, self.queries, self.keys)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mask::Input(port) => write!(f, "in{port}"),
            Mask::Arena { span, .. } => write!(f, "{span}f16"),
        }
    }
}
