//! Many numbers to one.

use std::fmt;

use super::{Access, Context, Run};
use crate::arena::Span;
use crate::compile::kind::Reduction;

/// `out (A,C) = op of x (A,B,C) over B`.
pub(crate) struct Reduce {
    pub(crate) op: Reduction,
    pub(crate) x: Span,
    pub(crate) out: Span,
    /// B
    pub(crate) len: usize,
    /// C
    pub(crate) inner: usize,
}

impl Run for Reduce {
    const NAME: &'static str = "reduce";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        let planes = reads.f32s(self.x).chunks_exact(self.len * self.inner);
        for (plane, out) in planes.zip(out.chunks_exact_mut(self.inner)) {
            out.fill(self.op.start());
            for row in plane.chunks_exact(self.inner) {
                for (x, out) in row.iter().zip(&mut *out) {
                    *out = self.op.step(*out, *x);
                }
            }
            for out in out {
                *out = self.op.finish(*out, self.len);
            }
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.x, Access::Read);
        visit(&mut self.out, Access::Write);
    }
}

impl Reduction {
    fn start(self) -> f32 {
        match self {
            Reduction::Max => f32::NEG_INFINITY,
            Reduction::Min => f32::INFINITY,
            Reduction::L2Norm | Reduction::Mean | Reduction::Sum | Reduction::SumSquare => 0.0,
        }
    }

    fn step(self, so_far: f32, x: f32) -> f32 {
        match self {
            Reduction::Max => so_far.max(x),
            Reduction::Min => so_far.min(x),
            Reduction::Mean | Reduction::Sum => so_far + x,
            Reduction::L2Norm | Reduction::SumSquare => so_far + x * x,
        }
    }

    fn finish(self, total: f32, len: usize) -> f32 {
        match self {
            Reduction::Mean => total / len as f32,
            Reduction::L2Norm => total.sqrt(),
            Reduction::Max | Reduction::Min | Reduction::Sum | Reduction::SumSquare => total,
        }
    }
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}({}) over {} x {}", self.out, self.op, self.x, self.len, self.inner)
    }
}
