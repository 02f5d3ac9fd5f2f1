//! Kernels that keep something in registers for each column they work on, and so need one copy for each
//! number of columns.

use crate::isa::Simd;

/// A computation unrolled for the number of columns it works on.
pub(super) trait WidthKernel {
    /// Computes for `N` columns.
    fn run<S: Simd, const N: usize>(self, simd: S);
}

/// Runs the copy of `kernel` made for `width` columns, from 1 to 12.
#[inline(always)]
pub(super) fn with_width<S: Simd>(simd: S, width: usize, kernel: impl WidthKernel) {
    match width {
        1 => kernel.run::<S, 1>(simd),
        2 => kernel.run::<S, 2>(simd),
        3 => kernel.run::<S, 3>(simd),
        4 => kernel.run::<S, 4>(simd),
        5 => kernel.run::<S, 5>(simd),
        6 => kernel.run::<S, 6>(simd),
        _ if width > S::TILE_COLUMNS => {
            unreachable!("groups are at most {} wide, this is {width}", S::TILE_COLUMNS)
        }
        7 => kernel.run::<S, 7>(simd),
        8 => kernel.run::<S, 8>(simd),
        9 => kernel.run::<S, 9>(simd),
        10 => kernel.run::<S, 10>(simd),
        11 => kernel.run::<S, 11>(simd),
        12 => kernel.run::<S, 12>(simd),
        _ => unreachable!("there are no copies for {width} columns"),
    }
}
