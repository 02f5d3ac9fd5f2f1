//! Rotary position embedding.

use std::fmt;

use super::{Access, Context, Run};
use crate::arena::Span;

/// `out = x * cos + concat(-x[half..], x[..half]) * sin` for each block of `2 * half` elements; the tables repeat.
pub(crate) struct Rope {
    pub(crate) x: Span,
    pub(crate) cos: Span,
    pub(crate) sin: Span,
    pub(crate) half: usize,
    pub(crate) out: Span,
}

impl Run for Rope {
    const NAME: &'static str = "rope";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        let (x, cos, sin) = (reads.f32s(self.x), reads.f32s(self.cos), reads.f32s(self.sin));
        context.kernels.rope(x, cos, sin, self.half, out);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        for span in [&mut self.x, &mut self.cos, &mut self.sin] {
            visit(span, Access::Read);
        }
        visit(&mut self.out, Access::Write);
    }
}

impl fmt::Display for Rope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rope { x, cos, sin, half, out } = self;
        write!(f, "{out} = rotate({x}, {cos}, {sin}) by {half}")
    }
}
