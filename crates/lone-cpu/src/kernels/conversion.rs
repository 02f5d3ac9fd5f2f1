//! f16 to f32 and back.

use half::f16;

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};

impl Kernels {
    /// `to[i] = from[i]`, exactly.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn f16_to_f32(&self, from: &[f16], to: &mut [f32]) {
        assert_eq!(from.len(), to.len(), "f16_to_f32: as many elements out as in");
        self.isa.run(Widen { from, to });
    }

    /// `to[i] = from[i]` rounded to the nearest f16, ties to even; beyond 65 519 it is infinity, NaN stays NaN.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn f32_to_f16(&self, from: &[f32], to: &mut [f16]) {
        assert_eq!(from.len(), to.len(), "f32_to_f16: as many elements out as in");
        self.isa.run(Narrow { from, to });
    }
}

struct Widen<'a> {
    from: &'a [f16],
    to: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (from, from_tail) = self.from.as_chunks::<LANES>();
        let (to, to_tail) = self.to.as_chunks_mut::<LANES>();
        for (from, to) in from.iter().zip(to) {
            simd.store(simd.load_f16(from), to);
        }
        simd.store_part(simd.load_f16_part(from_tail), to_tail);
    }
}

struct Narrow<'a> {
    from: &'a [f32],
    to: &'a mut [f16],
}

impl Kernel for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (from, from_tail) = self.from.as_chunks::<LANES>();
        let (to, to_tail) = self.to.as_chunks_mut::<LANES>();
        for (from, to) in from.iter().zip(to) {
            simd.store_f16(simd.load(from), to);
        }
        simd.store_f16_part(simd.load_part(from_tail), to_tail);
    }
}
