//! The kernels: safe functions over slices, each with its formula, its precision and its preconditions.
//!
//! Activations are f32, weights f16 or palettes of f16, caches f16, sums f32. Shapes are asserted at entry, outermost dimension
//! first; nothing allocates, but for room of each thread to arrange x for lookups or to round it, which it keeps. A kernel that takes a
//! [`Pool`](crate::Pool) spreads its work over it, the others are too short to gain. Every kernel is one body over
//! [`Simd`](crate::isa), compiled once for each instruction set.

mod activation;
mod attend;
mod attention;
mod conversion;
mod dots;
mod elementwise;
mod int16;
mod linear;
mod matmul;
mod norm;
mod palettes;
mod rope;
mod short_conv;
mod softmax;
mod strips;
mod transpose;
mod twelve_bits;
mod visible;
mod weights;
mod width;

pub use attention::{Attention, PastSegment};
pub use elementwise::{Binary, Operand};
pub use int16::Int16Palettized;
pub(crate) use int16::RoundedPalettes;
pub use linear::{Blend, Columns, Weights};
pub use palettes::{IndexBits, Palettized};
pub use twelve_bits::TwelveBits;
pub use visible::VisibleKeys;

use crate::isa::Isa;
use crate::pages::Pages;

/// The kernels of one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    isa: Isa,
    /// What weights are in.
    pages: Pages,
}

impl Kernels {
    /// The kernels of the widest instruction set this CPU has.
    pub fn detect() -> Self {
        Self::with_isa(Isa::detect())
    }

    /// The kernels of one instruction set, for weights in usual pages.
    pub fn with_isa(isa: Isa) -> Self {
        Self { isa, pages: Pages::Usual }
    }

    /// The same for weights in `pages`, which are read in the way that is best there.
    pub fn for_pages(self, pages: Pages) -> Self {
        Self { pages, ..self }
    }

    /// The instruction set they are compiled for.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}
