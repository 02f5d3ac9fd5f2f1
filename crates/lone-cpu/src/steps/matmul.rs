//! Products of two computed matrices.

use std::fmt;

use super::{Access, Context, Run};
use crate::arena::Span;
use crate::compile::view::Run as Axis;

/// `out (…,M,N) = x (…,M,K) y (…,K,N)`, out dense, x and y with strides of their own.
pub(crate) struct MatMul {
    pub(crate) x: Matrix,
    pub(crate) y: Matrix,
    pub(crate) out: Span,
    /// The axes in front, with the strides of x and y.
    pub(crate) batch: Vec<Axis<2>>,
    /// N
    pub(crate) columns: usize,
    /// M
    pub(crate) rows: usize,
    /// K
    pub(crate) inner: usize,
}

/// One side of a product.
pub(crate) struct Matrix {
    pub(crate) span: Span,
    pub(crate) offset: usize,
    /// From one row to the next, and from one column to the next.
    pub(crate) strides: [isize; 2],
}

impl Run for MatMul {
    const NAME: &'static str = "matmul";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        let (x, y) = (reads.f32s(self.x.span), reads.f32s(self.y.span));
        context.pool.for_each_chunk(out, self.columns, |index, out| {
            let [x_at, y_at] = self.plane(index / self.rows);
            let x_at = x_at + (index % self.rows) as isize * self.x.strides[0];
            out.fill(0.0);
            for k in 0..self.inner as isize {
                let x = x[(x_at + k * self.x.strides[1]) as usize];
                let row = y_at + k * self.y.strides[0];
                for (n, out) in (0..).zip(&mut *out) {
                    *out += x * y[(row + n * self.y.strides[1]) as usize];
                }
            }
        });
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        visit(&mut self.x.span, Access::Read);
        visit(&mut self.y.span, Access::Read);
        visit(&mut self.out, Access::Write);
    }
}

impl MatMul {
    /// Where the matrices of a batch index begin.
    fn plane(&self, mut index: usize) -> [isize; 2] {
        let mut at = [self.x.offset as isize, self.y.offset as isize];
        for axis in self.batch.iter().rev() {
            let i = (index % axis.len) as isize;
            index /= axis.len;
            at = [at[0] + i * axis.strides[0], at[1] + i * axis.strides[1]];
        }
        at
    }
}

impl fmt::Display for MatMul {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batch: usize = self.batch.iter().map(|axis| axis.len).product();
        let (m, k, n) = (self.rows, self.inner, self.columns);
        write!(f, "{} = {batch} x ({m},{k}) {} ({k},{n}) {}", self.out, self.x.span, self.y.span)
    }
}
