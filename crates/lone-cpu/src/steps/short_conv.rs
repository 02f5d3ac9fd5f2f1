//! The depthwise convolution over a short window.

use std::fmt;

use super::{Access, Context, Run};
use crate::arena::Span;

/// `out (D,S)[c,s] = Σ_k taps (D,K)[c,k] * window (D,K-1+S)[c,k+s]`.
pub(crate) struct ShortConv {
    pub(crate) window: Span,
    pub(crate) taps: Span,
    /// S
    pub(crate) columns: usize,
    pub(crate) out: Span,
}

impl Run for ShortConv {
    const NAME: &'static str = "short_conv";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        context.kernels.short_conv(reads.f32s(self.taps), reads.f32s(self.window), self.columns, out);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.window, Access::Read);
        visit(&mut self.taps, Access::Read);
        visit(&mut self.out, Access::Write);
    }
}

impl fmt::Display for ShortConv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShortConv { window, taps, columns, out } = self;
        write!(f, "{out} = {taps} over {window} x {columns}")
    }
}
