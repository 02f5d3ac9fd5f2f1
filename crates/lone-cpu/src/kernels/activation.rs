//! exp, sigmoid and gated SiLU.

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};
use crate::pool::Pool;

/// Elements per task of the pool: some ten microseconds of work.
const TASK_ELEMENTS: usize = 8192;

impl Kernels {
    /// `out[i] = e^x[i]`, within 2 ulp; subnormal results too. NaN stays NaN.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn exp(&self, x: &[f32], out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "exp: as many elements out as in");
        self.isa.run(Map { op: Exp, x, out });
    }

    /// `out[i] = 1 / (1 + e^-x[i])`, within 4 ulp where it is not subnormal.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn sigmoid(&self, x: &[f32], out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "sigmoid: as many elements out as in");
        self.isa.run(Map { op: Sigmoid, x, out });
    }

    /// `out[i] = gate[i] / (1 + e^-gate[i]) * up[i]`, within 5 ulp where it is not subnormal.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn gated_silu(&self, pool: &Pool, gate: &[f32], up: &[f32], out: &mut [f32]) {
        assert_eq!(gate.len(), out.len(), "gated_silu: as many elements out as gates");
        assert_eq!(up.len(), out.len(), "gated_silu: as many elements out as in");
        pool.for_each_chunk(out, TASK_ELEMENTS, |index, out| {
            let start = index * TASK_ELEMENTS;
            let (gate, up) = (&gate[start..][..out.len()], &up[start..][..out.len()]);
            self.isa.run(GatedSilu { gate, up, out });
        });
    }
}

/// e^x.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, e^r from a polynomial of degree 7 (Cephes), times 2^n.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // The first part of ln 2 has few enough bits that its product with n is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const COEFFICIENTS: [f32; 5] = [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let x = simd.max(simd.splat(-104.0), simd.min(simd.splat(89.0), x));
    let n = simd.round(simd.mul(x, simd.splat(std::f32::consts::LOG2_E)));
    let r = simd.mul_add(n, simd.splat(-LN_2[0]), x);
    let r = simd.mul_add(n, simd.splat(-LN_2[1]), r);
    let mut polynomial = simd.splat(1.987_569_1e-4);
    for coefficient in COEFFICIENTS {
        polynomial = simd.mul_add(polynomial, r, simd.splat(coefficient));
    }
    let one = simd.splat(1.0);
    let power = simd.add(simd.mul_add(polynomial, simd.mul(r, r), r), one);
    simd.mul_power_of_two(power, n)
}

/// `1 + e^-x`, what the logistic functions divide by.
#[inline(always)]
fn logistic_divisor<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    simd.add(simd.splat(1.0), exp(simd, simd.sub(simd.splat(0.0), x)))
}

/// A function of one number.
trait Function: Copy {
    fn apply<S: Simd>(self, simd: S, x: S::F32) -> S::F32;
}

#[derive(Clone, Copy)]
struct Exp;

impl Function for Exp {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        exp(simd, x)
    }
}

#[derive(Clone, Copy)]
struct Sigmoid;

impl Function for Sigmoid {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        simd.div(simd.splat(1.0), logistic_divisor(simd, x))
    }
}

struct Map<'a, F> {
    op: F,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl<F: Function> Kernel for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (x, out) in self.x.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            simd.store_part(self.op.apply(simd, simd.load_part(x)), out);
        }
    }
}

struct GatedSilu<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for GatedSilu<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for ((gate, up), out) in
            self.gate.chunks(LANES).zip(self.up.chunks(LANES)).zip(self.out.chunks_mut(LANES))
        {
            let gate = simd.load_part(gate);
            let silu = simd.div(gate, logistic_divisor(simd, gate));
            simd.store_part(simd.mul(silu, simd.load_part(up)), out);
        }
    }
}
