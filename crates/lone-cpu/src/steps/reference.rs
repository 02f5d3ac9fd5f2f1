//! Operations without a step of their own, by the reference interpreter. These do allocate.

use std::fmt;
use std::sync::Arc;

use half::f16;
use lone_mil::{BackendError, DType, TensorMut, TensorRef};

use super::{Access, Context, Run};
use crate::arena::{Reads, Span};
use crate::compile::reference::Isolated;

/// One operation.
pub(crate) struct Reference {
    pub(crate) isolated: Arc<Isolated>,
    pub(crate) inputs: Vec<Span>,
    pub(crate) out: Span,
}

impl Run for Reference {
    const NAME: &'static str = "reference";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let ([out], reads) = context.arena.borrow([self.out]);
        let types = self.isolated.inputs.iter().map(|ty| ty.dtype);
        let inputs: Vec<Input<'_>> =
            self.inputs.iter().zip(types).map(|(&span, dtype)| Input::of(&reads, span, dtype)).collect();
        let inputs: Vec<TensorRef<'_>> = inputs.iter().map(Input::tensor).collect();
        let outcome = match self.isolated.output.dtype {
            DType::F16 => {
                let mut halves = vec![f16::ZERO; out.len()];
                let outcome = self.isolated.run(&inputs, TensorMut::F16(&mut halves));
                context.kernels.f16_to_f32(&halves, out);
                outcome
            }
            DType::F32 => self.isolated.run(&inputs, TensorMut::F32(out)),
            _ => self.isolated.run(&inputs, TensorMut::I32(bytemuck::cast_slice_mut(out))),
        };
        if let Err(error) = outcome {
            context.failure.get_or_insert_with(|| match error {
                BackendError::Run { what, .. } => what,
                other => other.to_string(),
            });
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        for input in &mut self.inputs {
            visit(input, Access::Read);
        }
        visit(&mut self.out, Access::Write);
    }
}

/// An argument in the type the interpreter takes.
enum Input<'a> {
    F16(Vec<f16>),
    F32(&'a [f32]),
    I32(&'a [i32]),
}

impl<'a> Input<'a> {
    fn of(reads: &Reads<'a, 1>, span: Span, dtype: DType) -> Self {
        match dtype {
            DType::F16 => Input::F16(reads.f32s(span).iter().map(|&x| f16::from_f32(x)).collect()),
            DType::F32 => Input::F32(reads.f32s(span)),
            _ => Input::I32(reads.i32s(span)),
        }
    }

    fn tensor(&self) -> TensorRef<'_> {
        match self {
            Input::F16(data) => TensorRef::F16(data),
            Input::F32(data) => TensorRef::F32(data),
            Input::I32(data) => TensorRef::I32(data),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} =", self.out)?;
        self.inputs.iter().try_for_each(|input| write!(f, " {input}"))
    }
}
