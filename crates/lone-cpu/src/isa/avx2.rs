//! AVX2 with FMA, F16C and BMI1: a block is two registers of eight.

#![expect(
    unsafe_code,
    reason = "instructions that only some CPUs have, and loads and stores through pointers"
)]

mod look_up;

use std::arch::x86_64::*;

use half::f16;

use super::plain_words::plain_words;
use super::{HighBytes, Kernel, LANES, Simd, TwelveBitsChunk, methods_proven_by_token};
use look_up::{Palette4, Palette6, Palette8, look_up4, look_up6, look_up8, palette4, palette6, palette8};
use look_up::{arrange, look_up4_short, twelve_bits};

/// Proof that this CPU has AVX2, FMA, F16C and BMI1.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// A token, if this CPU has all four.
    pub fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1");
        all.then_some(Self(()))
    }
}

type F32 = [__m256; 2];

impl Simd for Avx2 {
    type F32 = F32;
    type Palette4 = Palette4;
    type Palette6 = Palette6;
    type Palette8 = Palette8;

    const TILE_COLUMNS: usize = 6;
    const LOOKS_UP_SLOWLY: bool = true;

    plain_words!();

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c,bmi1")]
        fn with_avx2<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: the token proves that the CPU has these features.
        unsafe { with_avx2(self, kernel) }
    }

    methods_proven_by_token! {
        fn splat(value: f32) -> F32;
        fn load(from: &[f32; LANES]) -> F32;
        fn store(value: F32, to: &mut [f32; LANES]);
        fn load_some(from: &[f32]) -> F32;
        fn load_f16(from: &[f16; LANES]) -> F32;
        fn store_f16(value: F32, to: &mut [f16; LANES]);
        fn palette4(entries: &[f16; 16]) -> Palette4;
        fn palette6(entries: &[f16; 64]) -> Palette6;
        fn palette8(entries: &[f16; 256]) -> Palette8;
        fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4];
        fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4];
        fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4];
        fn look_up4_short(palette: &Palette4, indices: &[u8; 64]) -> [F32; 8];
        fn twelve_bits(high: &HighBytes, chunk: &TwelveBitsChunk) -> [F32; 4];
        fn arrange(numbers: [F32; 8]) -> [F32; 8];
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
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) };
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn splat(value: f32) -> F32 {
    [_mm256_set1_ps(value); 2]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn load(from: &[f32; LANES]) -> F32 {
    // SAFETY: the first eight of sixteen elements.
    let low = unsafe { _mm256_loadu_ps(from.as_ptr()) };
    // SAFETY: the last eight of sixteen elements.
    let high = unsafe { _mm256_loadu_ps(from[8..].as_ptr()) };
    [low, high]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn store(value: F32, to: &mut [f32; LANES]) {
    // SAFETY: the first eight of sixteen elements.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), value[0]) };
    // SAFETY: the last eight of sixteen elements.
    unsafe { _mm256_storeu_ps(to[8..].as_mut_ptr(), value[1]) };
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn load_some(from: &[f32]) -> F32 {
    let [low, high] = first_lanes(from.len());
    // SAFETY: lanes past the end of the slice are not read.
    let low = unsafe { _mm256_maskload_ps(from.as_ptr(), low) };
    // SAFETY: lanes past the end of the slice are not read, and all of them are if it ends before.
    let high = unsafe { _mm256_maskload_ps(from.as_ptr().wrapping_add(8), high) };
    [low, high]
}

/// The masks of the first `count` lanes of a block.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn first_lanes(count: usize) -> [__m256i; 2] {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let count = count.min(LANES) as i32;
    [
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes),
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count - 8), lanes),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn load_f16(from: &[f16; LANES]) -> F32 {
    // SAFETY: the first eight of sixteen elements of 16 bits.
    let low = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
    // SAFETY: the last eight of sixteen elements of 16 bits.
    let high = unsafe { _mm_loadu_si128(from[8..].as_ptr().cast()) };
    [_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn store_f16(value: F32, to: &mut [f16; LANES]) {
    let low = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value[0]);
    let high = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value[1]);
    // SAFETY: the first eight of sixteen elements of 16 bits.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), low) };
    // SAFETY: the last eight of sixteen elements of 16 bits.
    unsafe { _mm_storeu_si128(to[8..].as_mut_ptr().cast(), high) };
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn add(a: F32, b: F32) -> F32 {
    [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn sub(a: F32, b: F32) -> F32 {
    [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn mul(a: F32, b: F32) -> F32 {
    [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn div(a: F32, b: F32) -> F32 {
    [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn max(a: F32, b: F32) -> F32 {
    [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn min(a: F32, b: F32) -> F32 {
    [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn mul_add(a: F32, b: F32, c: F32) -> F32 {
    [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn sqrt(a: F32) -> F32 {
    [_mm256_sqrt_ps(a[0]), _mm256_sqrt_ps(a[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn mul_power_of_two(a: F32, n: F32) -> F32 {
    [mul_power_of_two_8(a[0], n[0]), mul_power_of_two_8(a[1], n[1])]
}

/// Multiplies twice, by 2^(n / 2) and by the rest, so that neither factor leaves the range of f32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn mul_power_of_two_8(a: __m256, n: __m256) -> __m256 {
    let n = _mm256_cvtps_epi32(n);
    let half = _mm256_srai_epi32::<1>(n);
    _mm256_mul_ps(_mm256_mul_ps(a, power_of_two(half)), power_of_two(_mm256_sub_epi32(n, half)))
}

/// 2^n for n from -126 to 127, by its exponent bits.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn power_of_two(n: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(n, _mm256_set1_epi32(127))))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn round(a: F32) -> F32 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    [_mm256_round_ps::<NEAREST>(a[0]), _mm256_round_ps::<NEAREST>(a[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn sum(a: F32) -> f32 {
    let eight = _mm256_add_ps(a[0], a[1]);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn largest(a: F32) -> f32 {
    let eight = _mm256_max_ps(a[0], a[1]);
    let four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
}

/// Four transposes of 8 × 8, the two off the diagonal exchanged.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn transpose(rows: [F32; LANES]) -> [F32; LANES] {
    let quarter = |first: usize, half: usize| std::array::from_fn(|row| rows[first + row][half]);
    let (upper_left, upper_right) = (transpose_8(quarter(0, 0)), transpose_8(quarter(0, 1)));
    let (lower_left, lower_right) = (transpose_8(quarter(8, 0)), transpose_8(quarter(8, 1)));
    std::array::from_fn(|row| match row {
        0..8 => [upper_left[row], lower_left[row]],
        _ => [upper_right[row - 8], lower_right[row - 8]],
    })
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn transpose_8(r: [__m256; 8]) -> [__m256; 8] {
    let (a0, a1) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
    let (a2, a3) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
    let (a4, a5) = (_mm256_unpacklo_ps(r[4], r[5]), _mm256_unpackhi_ps(r[4], r[5]));
    let (a6, a7) = (_mm256_unpacklo_ps(r[6], r[7]), _mm256_unpackhi_ps(r[6], r[7]));
    let (b0, b1) = (_mm256_shuffle_ps::<0x44>(a0, a2), _mm256_shuffle_ps::<0xEE>(a0, a2));
    let (b2, b3) = (_mm256_shuffle_ps::<0x44>(a1, a3), _mm256_shuffle_ps::<0xEE>(a1, a3));
    let (b4, b5) = (_mm256_shuffle_ps::<0x44>(a4, a6), _mm256_shuffle_ps::<0xEE>(a4, a6));
    let (b6, b7) = (_mm256_shuffle_ps::<0x44>(a5, a7), _mm256_shuffle_ps::<0xEE>(a5, a7));
    [
        _mm256_permute2f128_ps::<0x20>(b0, b4),
        _mm256_permute2f128_ps::<0x20>(b1, b5),
        _mm256_permute2f128_ps::<0x20>(b2, b6),
        _mm256_permute2f128_ps::<0x20>(b3, b7),
        _mm256_permute2f128_ps::<0x31>(b0, b4),
        _mm256_permute2f128_ps::<0x31>(b1, b5),
        _mm256_permute2f128_ps::<0x31>(b2, b6),
        _mm256_permute2f128_ps::<0x31>(b3, b7),
    ]
}
