//! Softmax of rows.

use std::fmt;

use super::{Access, Context, Run};
use crate::arena::Span;

/// `x (rows, columns)`, in place.
pub(crate) struct Softmax {
    pub(crate) x: Span,
    pub(crate) columns: usize,
}

impl Run for Softmax {
    const NAME: &'static str = "softmax";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([x], _) = context.arena.borrow([self.x]);
        context.kernels.softmax(x, self.columns);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.x.clone(), Access::Read);
        visit(&mut self.x, Access::Write);
    }
}

impl fmt::Display for Softmax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in rows of {}", self.x, self.columns)
    }
}
