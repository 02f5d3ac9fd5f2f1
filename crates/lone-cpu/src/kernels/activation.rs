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

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::testing::{EXP_ULPS, GATED_SILU_ULPS, Numbers, SIGMOID_ULPS, assert_ulps, every_isa};

    /// From far below underflow to far above overflow, densest around zero.
    fn arguments() -> Vec<f32> {
        let mut numbers = Numbers::seeded(2);
        let mut x = [1e-6, 1e-2, 1.0, 10.0, 87.0, 110.0]
            .into_iter()
            .flat_map(|scale| numbers.f32s(5000, scale))
            .collect::<Vec<_>>();
        x.extend([
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            88.72,
            88.73,
            -87.3,
            -103.9,
            -104.1,
            1e30,
            -1e30,
        ]);
        x
    }

    #[test]
    fn exp_keeps_its_promise_from_underflow_to_overflow() {
        let x = arguments();
        for kernels in every_isa() {
            let mut out = vec![0.0; x.len()];
            kernels.exp(&x, &mut out);
            for (x, out) in x.iter().zip(out) {
                assert_ulps(out, f64::from(*x).exp(), EXP_ULPS, &format!("{} exp({x:e})", kernels.isa()));
            }
        }
    }

    #[test]
    fn sigmoid_keeps_its_promise() {
        let x: Vec<f32> = arguments().into_iter().filter(|x| x.is_nan() || *x > -87.0).collect();
        for kernels in every_isa() {
            let mut out = vec![0.0; x.len()];
            kernels.sigmoid(&x, &mut out);
            for (x, out) in x.iter().zip(out) {
                let expected = 1.0 / (1.0 + (-f64::from(*x)).exp());
                assert_ulps(out, expected, SIGMOID_ULPS, &format!("{} sigmoid({x:e})", kernels.isa()));
            }
        }
    }

    #[test]
    fn gated_silu_keeps_its_promise_whatever_the_threads() {
        let gate: Vec<f32> = arguments().into_iter().filter(|x| *x > -80.0).collect();
        let up = Numbers::seeded(3).f32s(gate.len(), 3.0).iter().map(|x| x + x.signum()).collect::<Vec<_>>();
        for (kernels, threads) in every_isa().flat_map(|kernels| [(kernels, 1), (kernels, 3)]) {
            let pool = Pool::new(NonZeroUsize::new(threads).unwrap());
            let mut out = vec![0.0; gate.len()];
            kernels.gated_silu(&pool, &gate, &up, &mut out);
            for ((gate, up), out) in gate.iter().zip(&up).zip(out) {
                let expected = f64::from(*gate) / (1.0 + (-f64::from(*gate)).exp()) * f64::from(*up);
                assert_ulps(
                    out,
                    expected,
                    GATED_SILU_ULPS,
                    &format!("{} gated_silu({gate:e}, {up:e})", kernels.isa()),
                );
            }
        }
    }
}
