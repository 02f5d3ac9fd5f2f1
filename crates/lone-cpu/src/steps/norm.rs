//! Root mean square norms.

use std::fmt;

use super::{Access, Context, Run};
use crate::arena::Span;

/// `out (B,C,S) = weight (C) * x / sqrt(mean of x² over C + epsilon)`.
pub(crate) struct RmsNorm {
    pub(crate) x: Span,
    pub(crate) weight: Span,
    pub(crate) epsilon: f32,
    /// S
    pub(crate) columns: usize,
    pub(crate) out: Span,
}

impl Run for RmsNorm {
    const NAME: &'static str = "rms_norm";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        let (x, weight) = (reads.f32s(self.x), reads.f32s(self.weight));
        context.kernels.rms_norm(x, weight, self.epsilon, self.columns, out);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.x, Access::Read);
        visit(&mut self.weight, Access::Read);
        visit(&mut self.out, Access::Write);
    }
}

impl fmt::Display for RmsNorm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RmsNorm { x, weight, epsilon, columns, out } = self;
        write!(f, "{out} = norm({x}, {weight}, epsilon {epsilon:e}) x {columns}")
    }
}
