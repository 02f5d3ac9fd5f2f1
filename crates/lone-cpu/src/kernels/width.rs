//! Kernels that keep something in registers for each column they work on, and so need one copy for each
//! number of columns.

use crate::isa::Simd;

/// A computation unrolled for the number of columns it works on.
pub(super) trait WidthKernel {
    /// Computes for `N` columns.
    fn run<S: Simd, const N: usize>(self, simd: S);
}

/// Runs the copy of `kernel` made for `width` columns, from 1 to [`Simd::TILE_COLUMNS`].
#[inline(always)]
pub(super) fn with_width<S: Simd>(simd: S, width: usize, kernel: impl WidthKernel) {
    match width {
        1 => kernel.run::<S, 1>(simd),
        2 => kernel.run::<S, 2>(simd),
        3 => kernel.run::<S, 3>(simd),
        4 => kernel.run::<S, 4>(simd),
        // Asked here so that the compiler leaves out the copies that no register file has room for.
        _ if width > S::TILE_COLUMNS => unreachable!("{width} columns do not fit in registers"),
        5 => kernel.run::<S, 5>(simd),
        6 => kernel.run::<S, 6>(simd),
        7 => kernel.run::<S, 7>(simd),
        8 => kernel.run::<S, 8>(simd),
        9 => kernel.run::<S, 9>(simd),
        10 => kernel.run::<S, 10>(simd),
        11 => kernel.run::<S, 11>(simd),
        12 => kernel.run::<S, 12>(simd),
        _ => unreachable!("no tile is wider than twelve"),
    }
}
