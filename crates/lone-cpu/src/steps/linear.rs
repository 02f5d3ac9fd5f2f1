//! Weights times activations: what nearly all of the time goes into.

use std::fmt;
use std::sync::Arc;

use half::f16;
use lone_mil::{BlobFile, TensorType};

use super::{Access, Context, Run};
use crate::arena::Span;
use crate::kernels::{Blend, Columns};

/// `out (M,S) = alpha * Σ_i w_i x_i`, added to what `out` holds if `accumulate`.
pub(crate) struct Projection {
    pub(crate) parts: Vec<Part>,
    /// S
    pub(crate) columns: usize,
    pub(crate) alpha: f32,
    pub(crate) accumulate: bool,
    pub(crate) out: Span,
    /// What the kernel needs besides, where S > 1.
    pub(crate) scratch: Option<Span>,
}

/// One term.
pub(crate) struct Part {
    /// `(M,K)`
    pub(crate) weight: Weight,
    /// `(K,S)`
    pub(crate) x: Span,
}

/// A matrix of weights, used where it is.
#[derive(Clone)]
pub(crate) enum Weight {
    /// The blob of type `ty` whose record is at `offset` of the weight file.
    Mapped { offset: u64, ty: TensorType },
    /// Held by the plan, for what the program wrote in place or computes from constants.
    Held(Arc<[f16]>),
}

impl Weight {
    fn f16s<'a>(&'a self, blobs: &'a BlobFile) -> &'a [f16] {
        match self {
            Weight::Mapped { offset, ty } => blobs.f16s(*offset, ty).expect("checked when it was compiled"),
            Weight::Held(weights) => weights,
        }
    }

    fn elements(&self) -> usize {
        match self {
            Weight::Mapped { ty, .. } => ty.shape.elements(),
            Weight::Held(weights) => weights.len(),
        }
    }
}

impl Run for Projection {
    const NAME: &'static str = "projection";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let (kernels, pool) = (context.kernels, context.pool);
        let blend = |part: usize| Blend { alpha: self.alpha, accumulate: self.accumulate || part > 0 };
        let weights = self.parts.iter().map(|part| part.weight.f16s(context.blobs));
        match self.scratch {
            None => {
                let ([out], reads) = context.arena.borrow([self.out]);
                for (i, (part, weight)) in self.parts.iter().zip(weights).enumerate() {
                    kernels.matvec_f16(pool, weight, reads.f32s(part.x), out, blend(i));
                }
            }
            Some(scratch) => {
                let ([out, scratch], reads) = context.arena.borrow([self.out, scratch]);
                for (i, (part, weight)) in self.parts.iter().zip(weights).enumerate() {
                    let x = Columns::dense(reads.f32s(part.x), self.columns);
                    kernels.matmul_f16(pool, weight, x, out, blend(i), scratch);
                }
            }
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        for part in &mut self.parts {
            visit(&mut part.x, Access::Read);
        }
        if self.accumulate {
            visit(&mut self.out.clone(), Access::Read);
        }
        visit(&mut self.out, Access::Write);
        if let Some(scratch) = &mut self.scratch {
            visit(scratch, Access::Write);
        }
    }

    fn outside_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.weight.elements() * size_of::<f16>()).sum()
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.out, if self.accumulate { "+=" } else { "=" })?;
        if self.alpha != 1.0 {
            write!(f, "{} * ", self.alpha)?;
        }
        for (i, part) in self.parts.iter().enumerate() {
            let plus = if i > 0 { " + " } else { "" };
            write!(f, "{plus}f16({},{}) {}", self.out.len / self.columns, part.x.len / self.columns, part.x)?;
        }
        write!(f, " x {}", self.columns)
    }
}
