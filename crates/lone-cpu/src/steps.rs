//! Steps: what a compiled function is made of. Each reads and writes spans of the arena, or ports, and none but
//! [`Reference`] allocates more than room that is kept.
//!
//! A step that is worth it spreads its work over the pool; the others run on the calling thread.

mod attention;
mod copy;
mod elementwise;
mod linear;
mod matmul;
mod norm;
mod reduce;
mod reference;
mod rope;
mod short_conv;
mod softmax;

use std::fmt;

use lone_mil::{BlobFile, TensorMut, TensorRef};

pub(crate) use attention::{Attention, MAX_SEGMENTS, Mask, PastRows, ReadMask};
pub(crate) use copy::{Copy, Port, Side};
pub(crate) use elementwise::{Binary, GatedSilu, Operand, OperandForm, Unary};
pub(crate) use linear::{
    Layer, Numbers, PalettizedWeight, Part, Projection, ROWS_PER_BLOCK, TwelveBitsWeight, Weight,
};
pub(crate) use matmul::{MatMul, Matrix};
pub(crate) use norm::RmsNorm;
pub(crate) use reduce::Reduce;
pub(crate) use reference::Reference;
pub(crate) use rope::Rope;
pub(crate) use short_conv::ShortConv;
pub(crate) use softmax::Softmax;

use crate::arena::{Arena, Span};
use crate::kernels::VisibleKeys;
use crate::{Kernels, Pool};

/// What steps work on.
pub(crate) struct Context<'a, 'i, 'o> {
    pub(crate) arena: &'a mut Arena,
    pub(crate) inputs: &'a [TensorRef<'i>],
    pub(crate) outputs: &'a mut [TensorMut<'o>],
    pub(crate) blobs: &'a BlobFile,
    pub(crate) kernels: Kernels,
    pub(crate) pool: &'a Pool,
    /// What each distinct mask of the function leaves visible.
    pub(crate) visible: &'a mut [VisibleKeys],
    /// Why the first step that failed did.
    pub(crate) failure: Option<String>,
}

/// How a step uses a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Written, and read too if it says so by a `Read` of its own.
    Write,
}

/// One kind of step.
pub(crate) trait Run: fmt::Display {
    /// What it is called in plans and profiles.
    const NAME: &'static str;

    /// Does it.
    fn run(&self, context: &mut Context<'_, '_, '_>);

    /// Shows every span it uses to `visit`.
    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access));

    /// Bytes of weights it reads, those among constants in the arena not counted.
    fn weight_bytes(&self) -> usize {
        0
    }

    /// Multiply-adds of those weights.
    fn multiply_adds(&self) -> usize {
        0
    }

    /// Bytes of weights, caches and ports it reads or writes at most, the arena not counted.
    fn outside_bytes(&self) -> usize {
        self.weight_bytes()
    }
}

macro_rules! steps {
    ($($step:ident),*) => {
        /// A step of a plan.
        pub(crate) enum Step {
            $($step($step)),*
        }

        impl Step {
            pub(crate) fn name(&self) -> &'static str {
                match self { $(Step::$step(_) => $step::NAME),* }
            }

            #[inline]
            pub(crate) fn run(&self, context: &mut Context<'_, '_, '_>) {
                match self { $(Step::$step(step) => step.run(context)),* }
            }

            pub(crate) fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
                match self { $(Step::$step(step) => step.visit(visit)),* }
            }

            pub(crate) fn weight_bytes(&self) -> usize {
                match self { $(Step::$step(step) => step.weight_bytes()),* }
            }

            pub(crate) fn multiply_adds(&self) -> usize {
                match self { $(Step::$step(step) => step.multiply_adds()),* }
            }

            pub(crate) fn outside_bytes(&self) -> usize {
                match self { $(Step::$step(step) => step.outside_bytes()),* }
            }
        }

        impl fmt::Display for Step {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:<12} ", self.name())?;
                match self { $(Step::$step(step) => step.fmt(f)),* }
            }
        }

        $(impl From<$step> for Step {
            fn from(step: $step) -> Self {
                Step::$step(step)
            }
        })*
    };
}

steps!(
    Attention, Binary, Copy, GatedSilu, MatMul, Projection, ReadMask, Reduce, Reference, RmsNorm, Rope,
    ShortConv, Softmax, Unary
);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}+{}]", self.start, self.len)
    }
}
