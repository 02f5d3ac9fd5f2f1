//! NEON, with the f16 conversions every aarch64 CPU has: a block is four registers of four.

#![expect(unsafe_code, reason = "loads and stores through pointers, and one instruction by its name")]

mod look_up;

use std::arch::aarch64::*;
use std::array::from_fn;

use half::f16;

use super::plain_words::plain_words;
use super::{Kernel, LANES, Simd, methods_proven_by_token};
use look_up::{Palette4, Palette6, Palette8, look_up4, look_up6, look_up8, palette4, palette6, palette8};

/// Proof that this CPU has NEON, which every aarch64 CPU that Rust's standard library runs on does.
#[derive(Clone, Copy, Debug)]
pub struct Neon(());

impl Neon {
    /// A token, if this CPU has NEON.
    pub fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

type F32 = [float32x4_t; 4];

impl Simd for Neon {
    type F32 = F32;
    type Palette4 = Palette4;
    type Palette6 = Palette6;
    type Palette8 = Palette8;

    const TILE_COLUMNS: usize = 6;

    plain_words!();

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "neon")]
        fn with_neon<K: Kernel>(simd: Neon, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: the token proves that the CPU has NEON.
        unsafe { with_neon(self, kernel) }
    }

    methods_proven_by_token! {
        fn splat(value: f32) -> F32;
        fn load(from: &[f32; LANES]) -> F32;
        fn store(value: F32, to: &mut [f32; LANES]);
        fn load_f16(from: &[f16; LANES]) -> F32;
        fn store_f16(value: F32, to: &mut [f16; LANES]);
        fn palette4(entries: &[f16; 16]) -> Palette4;
        fn palette6(entries: &[f16; 64]) -> Palette6;
        fn palette8(entries: &[f16; 256]) -> Palette8;
        fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4];
        fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4];
        fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4];
        fn add(a: F32, b: F32) -> F32;
        fn sub(a: F32, b: F32) -> F32;
        fn mul(a: F32, b: F32) -> F32;
        fn div(a: F32, b: F32) -> F32;
        fn max(a: F32, b: F32) -> F32;
        fn min(a: F32, b: F32) -> F32;
        fn mul_add(a: F32, b: F32, c: F32) -> F32;
        fn sqrt(a: F32) -> F32;
        fn mul_power_of_two(a: F32, n: F32) -> F32;
        fn round(a: F32) -> F32;
        fn sum(a: F32) -> f32;
        fn largest(a: F32) -> f32;
        fn transpose(rows: [F32; LANES]) -> [F32; LANES];
    }

    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        // SAFETY: a prefetch is a hint; it reads nothing and cannot fault.
        unsafe {
            std::arch::asm!("prfm pldl2keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags))
        };
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn splat(value: f32) -> F32 {
    [vdupq_n_f32(value); 4]
}

#[inline]
#[target_feature(enable = "neon")]
fn load(from: &[f32; LANES]) -> F32 {
    // SAFETY: four of the sixteen elements, from 4 * quarter on.
    from_fn(|quarter| unsafe { vld1q_f32(from[4 * quarter..].as_ptr()) })
}

#[inline]
#[target_feature(enable = "neon")]
fn store(value: F32, to: &mut [f32; LANES]) {
    for (to, quarter) in to.as_chunks_mut::<4>().0.iter_mut().zip(value) {
        // SAFETY: the chunk is four elements.
        unsafe { vst1q_f32(to.as_mut_ptr(), quarter) };
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_f16(from: &[f16; LANES]) -> F32 {
    from_fn(|quarter| {
        // SAFETY: four of the sixteen elements of 16 bits, from 4 * quarter on.
        let bits = unsafe { vld1_u16(from[4 * quarter..].as_ptr().cast()) };
        vcvt_f32_f16(vreinterpret_f16_u16(bits))
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn store_f16(value: F32, to: &mut [f16; LANES]) {
    for (to, quarter) in to.as_chunks_mut::<4>().0.iter_mut().zip(value) {
        let bits = vreinterpret_u16_f16(vcvt_f16_f32(quarter));
        // SAFETY: the chunk is four elements of 16 bits.
        unsafe { vst1_u16(to.as_mut_ptr().cast(), bits) };
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn add(a: F32, b: F32) -> F32 {
    from_fn(|i| vaddq_f32(a[i], b[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn sub(a: F32, b: F32) -> F32 {
    from_fn(|i| vsubq_f32(a[i], b[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn mul(a: F32, b: F32) -> F32 {
    from_fn(|i| vmulq_f32(a[i], b[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn div(a: F32, b: F32) -> F32 {
    from_fn(|i| vdivq_f32(a[i], b[i]))
}

/// Not `vmaxq_f32`, which is NaN where either is.
#[inline]
#[target_feature(enable = "neon")]
fn max(a: F32, b: F32) -> F32 {
    from_fn(|i| vbslq_f32(vcgtq_f32(a[i], b[i]), a[i], b[i]))
}

/// Not `vminq_f32`, which is NaN where either is.
#[inline]
#[target_feature(enable = "neon")]
fn min(a: F32, b: F32) -> F32 {
    from_fn(|i| vbslq_f32(vcltq_f32(a[i], b[i]), a[i], b[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn mul_add(a: F32, b: F32, c: F32) -> F32 {
    from_fn(|i| vfmaq_f32(c[i], a[i], b[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn sqrt(a: F32) -> F32 {
    from_fn(|i| vsqrtq_f32(a[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn mul_power_of_two(a: F32, n: F32) -> F32 {
    from_fn(|i| mul_power_of_two_4(a[i], n[i]))
}

/// Multiplies twice, by 2^(n / 2) and by the rest, so that neither factor leaves the range of f32.
#[inline]
#[target_feature(enable = "neon")]
fn mul_power_of_two_4(a: float32x4_t, n: float32x4_t) -> float32x4_t {
    let n = vcvtnq_s32_f32(n);
    let half = vshrq_n_s32::<1>(n);
    vmulq_f32(vmulq_f32(a, power_of_two(half)), power_of_two(vsubq_s32(n, half)))
}

/// 2^n for n from -126 to 127, by its exponent bits.
#[inline]
#[target_feature(enable = "neon")]
fn power_of_two(n: int32x4_t) -> float32x4_t {
    vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127))))
}

#[inline]
#[target_feature(enable = "neon")]
fn round(a: F32) -> F32 {
    from_fn(|i| vrndnq_f32(a[i]))
}

#[inline]
#[target_feature(enable = "neon")]
fn sum(a: F32) -> f32 {
    vaddvq_f32(vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3])))
}

#[inline]
#[target_feature(enable = "neon")]
fn largest(a: F32) -> f32 {
    vmaxvq_f32(vmaxq_f32(vmaxq_f32(a[0], a[2]), vmaxq_f32(a[1], a[3])))
}

#[inline]
#[target_feature(enable = "neon")]
fn transpose(rows: [F32; LANES]) -> [F32; LANES] {
    let mut columns = rows;
    for (four, rows) in rows.as_chunks::<4>().0.iter().enumerate() {
        for quarter in 0..4 {
            let turned =
                transpose_4([rows[0][quarter], rows[1][quarter], rows[2][quarter], rows[3][quarter]]);
            (0..4).for_each(|column| columns[4 * quarter + column][four] = turned[column]);
        }
    }
    columns
}

#[inline]
#[target_feature(enable = "neon")]
fn transpose_4(r: [float32x4_t; 4]) -> [float32x4_t; 4] {
    let pair = |a, b| (vreinterpretq_f64_f32(vtrn1q_f32(a, b)), vreinterpretq_f64_f32(vtrn2q_f32(a, b)));
    let ((a0, a1), (a2, a3)) = (pair(r[0], r[1]), pair(r[2], r[3]));
    [vtrn1q_f64(a0, a2), vtrn1q_f64(a1, a3), vtrn2q_f64(a0, a2), vtrn2q_f64(a1, a3)]
        .map(|d| vreinterpretq_f32_f64(d))
}
