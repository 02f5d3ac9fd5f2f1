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

    /// `to[i] = from[i]` rounded to the nearest f16, ties to even; beyond 65 519 it is infinity, NaN stays
    /// NaN.
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
        for (from, to) in self.from.chunks(LANES).zip(self.to.chunks_mut(LANES)) {
            simd.store_part(simd.load_f16_part(from), to);
        }
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
        for (from, to) in self.from.chunks(LANES).zip(self.to.chunks_mut(LANES)) {
            simd.store_f16_part(simd.load_part(from), to);
        }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use crate::testing::every_isa;

    #[test]
    fn every_f16_becomes_its_f32_and_comes_back() {
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for kernels in every_isa() {
            let (mut wide, mut back) = (vec![0.0; all.len()], vec![f16::ZERO; all.len()]);
            kernels.f16_to_f32(&all, &mut wide);
            kernels.f32_to_f16(&wide, &mut back);
            for (i, &x) in all.iter().enumerate() {
                let same = wide[i] == x.to_f32() && back[i].to_bits() == x.to_bits();
                assert!(
                    same || (wide[i].is_nan() && back[i].is_nan() && x.is_nan()),
                    "{}: {x}",
                    kernels.isa()
                );
            }
        }
    }

    #[test]
    fn rounding_to_f16_is_to_nearest_even_and_overflows_to_infinity() {
        let step = f32::from(f16::EPSILON);
        let cases = [
            (1.0 + step / 2.0, 1.0),
            (1.0 + 1.5 * step, 1.0 + 2.0 * step),
            (65519.9, 65504.0),
            (65520.0, f32::INFINITY),
            (-1e9, f32::NEG_INFINITY),
            (2f32.powi(-25), 0.0),
            (1.1 * 2f32.powi(-25), 2f32.powi(-24)),
        ];
        let (from, expected): (Vec<f32>, Vec<f32>) = cases.into_iter().unzip();
        for kernels in every_isa() {
            let mut to = vec![f16::ZERO; from.len()];
            kernels.f32_to_f16(&from, &mut to);
            assert_eq!(to.iter().map(|x| x.to_f32()).collect::<Vec<_>>(), expected, "{}", kernels.isa());
        }
    }
}
