//! Moving elements: from ports, to ports, into another order, into another type, into a place among others.

use std::fmt;

use half::f16;
use lone_mil::{TensorMut, TensorRef};

use super::{Access, Context, Run};
use crate::Kernels;
use crate::arena::{Element, Span};
use crate::compile::view::Run as Axis;

/// Elements from which on a run is worth the call of a kernel.
const LONG_RUN: usize = 16;

/// `to[i] = from[i]`, each with strides of its own.
pub(crate) struct Copy {
    pub(crate) from: Side,
    pub(crate) to: Side,
    /// Strides of `from`, then of `to`.
    pub(crate) axes: Vec<Axis<2>>,
}

/// One end of a copy.
pub(crate) struct Side {
    pub(crate) place: Port,
    pub(crate) element: Element,
    /// The first element.
    pub(crate) offset: usize,
}

/// Where a side is.
pub(crate) enum Port {
    Input(usize),
    Output(usize),
    Arena(Span),
}

impl Run for Copy {
    const NAME: &'static str = "copy";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let kernels = context.kernels;
        match (&self.from.place, &self.to.place) {
            (&Port::Arena(from), &Port::Arena(to)) => {
                let ([to], reads) = context.arena.borrow([to]);
                self.copy(kernels, self.from.element.read(reads.f32s(from)), self.to.element.write(to));
            }
            (&Port::Arena(from), &Port::Output(port)) => {
                let ([], reads) = context.arena.borrow([]);
                let to = reborrow(&mut context.outputs[port]);
                self.copy(kernels, self.from.element.read(reads.f32s(from)), to);
            }
            (&Port::Input(port), &Port::Arena(to)) => {
                let ([to], _) = context.arena.borrow([to]);
                self.copy(kernels, context.inputs[port], self.to.element.write(to));
            }
            (&Port::Input(from), &Port::Output(to)) => {
                self.copy(kernels, context.inputs[from], reborrow(&mut context.outputs[to]));
            }
            (Port::Output(_), _) | (_, Port::Input(_)) => unreachable!("copies lead from inputs to outputs"),
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        if let Port::Arena(span) = &mut self.from.place {
            visit(span, Access::Read);
        }
        if let Port::Arena(span) = &mut self.to.place {
            visit(span, Access::Write);
        }
    }

    fn outside_bytes(&self) -> usize {
        let elements: usize = self.axes.iter().map(|axis| axis.len).product();
        let bytes = |side: &Side| match side.place {
            Port::Arena(_) => 0,
            Port::Input(_) | Port::Output(_) => elements * side.element.bytes(),
        };
        bytes(&self.from) + bytes(&self.to)
    }
}

impl Copy {
    fn copy(&self, kernels: Kernels, from: TensorRef<'_>, to: TensorMut<'_>) {
        match (from, to) {
            (TensorRef::F16(from), TensorMut::F16(to)) => self.walk(kernels, from, to),
            (TensorRef::F16(from), TensorMut::F32(to)) => self.walk(kernels, from, to),
            (TensorRef::F16(from), TensorMut::I32(to)) => self.walk(kernels, from, to),
            (TensorRef::F32(from), TensorMut::F16(to)) => self.walk(kernels, from, to),
            (TensorRef::F32(from), TensorMut::F32(to)) => match self.transposed() {
                Some([rows, columns]) => {
                    let elements = self.axes.iter().map(|axis| axis.len).product();
                    let from = &from[self.from.offset..][..elements];
                    kernels.transpose(from, rows, columns, &mut to[self.to.offset..][..elements]);
                }
                None => self.walk(kernels, from, to),
            },
            (TensorRef::F32(from), TensorMut::I32(to)) => self.walk(kernels, from, to),
            (TensorRef::I32(from), TensorMut::F16(to)) => self.walk(kernels, from, to),
            (TensorRef::I32(from), TensorMut::F32(to)) => self.walk(kernels, from, to),
            (TensorRef::I32(from), TensorMut::I32(to)) => self.walk(kernels, from, to),
        }
    }

    /// Rows and columns of the matrices of `from`, if all this does is to transpose them.
    fn transposed(&self) -> Option<[usize; 2]> {
        let [batch @ .., outer, inner] = self.axes.as_slice() else { return None };
        let (columns, rows) = (outer.len as isize, inner.len as isize);
        let plane = rows * columns;
        let swaps = outer.strides == [1, rows] && inner.strides == [columns, 1];
        let stacked = batch.is_empty() || matches!(batch, [batch] if batch.strides == [plane, plane]);
        (swaps && stacked).then_some([inner.len, outer.len])
    }

    fn walk<A: Convert<B>, B>(&self, kernels: Kernels, from: &[A], to: &mut [B]) {
        let [a, b] = [self.from.offset as isize, self.to.offset as isize];
        walk(&self.axes, [a, b], &mut |inner, [a, b]| {
            let [a_stride, b_stride] = inner.strides;
            if inner.strides == [1, 1] && inner.len >= LONG_RUN {
                let (a, b) = (a as usize, b as usize);
                A::convert_all(kernels, &from[a..a + inner.len], &mut to[b..b + inner.len]);
            } else {
                for i in 0..inner.len as isize {
                    to[(b + i * b_stride) as usize] = from[(a + i * a_stride) as usize].convert();
                }
            }
        });
    }
}

/// Calls `visit` for each run along the innermost axis, with where it begins in both.
fn walk(axes: &[Axis<2>], at: [isize; 2], visit: &mut dyn FnMut(Axis<2>, [isize; 2])) {
    match axes {
        [] => visit(Axis { len: 1, strides: [1, 1] }, at),
        [inner] => visit(*inner, at),
        [outer, inner @ ..] => {
            for i in 0..outer.len as isize {
                walk(inner, [at[0] + i * outer.strides[0], at[1] + i * outer.strides[1]], visit);
            }
        }
    }
}

/// A number that becomes a number of another type.
trait Convert<B>: std::marker::Copy {
    fn convert(self) -> B;

    fn convert_all(_: Kernels, from: &[Self], to: &mut [B]) {
        for (&from, to) in from.iter().zip(to) {
            *to = from.convert();
        }
    }
}

impl<A: std::marker::Copy> Convert<A> for A {
    fn convert(self) -> A {
        self
    }
    fn convert_all(_: Kernels, from: &[A], to: &mut [A]) {
        to.copy_from_slice(from);
    }
}

impl Convert<f32> for f16 {
    fn convert(self) -> f32 {
        self.to_f32()
    }
    fn convert_all(kernels: Kernels, from: &[f16], to: &mut [f32]) {
        kernels.f16_to_f32(from, to);
    }
}

impl Convert<f16> for f32 {
    fn convert(self) -> f16 {
        f16::from_f32(self)
    }
    fn convert_all(kernels: Kernels, from: &[f32], to: &mut [f16]) {
        kernels.f32_to_f16(from, to);
    }
}

impl Convert<i32> for f32 {
    fn convert(self) -> i32 {
        self as i32
    }
}

impl Convert<i32> for f16 {
    fn convert(self) -> i32 {
        self.to_f32() as i32
    }
}

impl Convert<f32> for i32 {
    fn convert(self) -> f32 {
        self as f32
    }
}

impl Convert<f16> for i32 {
    fn convert(self) -> f16 {
        f16::from_f32(self as f32)
    }
}

fn reborrow<'a>(port: &'a mut TensorMut<'_>) -> TensorMut<'a> {
    match port {
        TensorMut::F16(data) => TensorMut::F16(data),
        TensorMut::F32(data) => TensorMut::F32(data),
        TensorMut::I32(data) => TensorMut::I32(data),
    }
}

impl Element {
    fn read(self, slots: &[f32]) -> TensorRef<'_> {
        match self {
            Element::F32 => TensorRef::F32(slots),
            Element::F16 => TensorRef::F16(bytemuck::cast_slice(slots)),
            Element::I32 => TensorRef::I32(bytemuck::cast_slice(slots)),
        }
    }

    fn write(self, slots: &mut [f32]) -> TensorMut<'_> {
        match self {
            Element::F32 => TensorMut::F32(slots),
            Element::F16 => TensorMut::F16(bytemuck::cast_slice_mut(slots)),
            Element::I32 => TensorMut::I32(bytemuck::cast_slice_mut(slots)),
        }
    }
}

impl fmt::Display for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} over", self.to, self.from)?;
        for axis in &self.axes {
            write!(f, " {}:{}:{}", axis.len, axis.strides[1], axis.strides[0])?;
        }
        Ok(())
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Port::Input(port) => write!(f, "in{port}")?,
            Port::Output(port) => write!(f, "out{port}")?,
            Port::Arena(span) => span.fmt(f)?,
        }
        match self.element {
            Element::F32 => {}
            Element::F16 => f.write_str("f16")?,
            Element::I32 => f.write_str("i32")?,
        }
        if self.offset > 0 { write!(f, "@{}", self.offset) } else { Ok(()) }
    }
}
