//! AVX-512 (F, BW, DQ, VL, VBMI, VNNI): a block is one register.
//!
//! Without VBMI, whose byte permutations are what palettes are looked up with, a CPU runs the code for AVX2. VNNI came
//! with it, but for one model of 2018.

#![expect(
    unsafe_code,
    reason = "instructions that only some CPUs have, and loads and stores through pointers"
)]

mod look_up;
mod words;

use std::arch::x86_64::*;

use half::f16;

use super::{Kernel, LANES, Simd, methods_proven_by_token};
use look_up::{Palette4, Palette6, Palette8, look_up4, look_up6, look_up8, palette4, palette6, palette8};
use look_up::{arrange, look_up4_short, look_up6_short, look_up8_short, palette6_short, palette8_short};
use words::{
    add_products, add_products_of, float_sums, load_words, no_sums, store_pairs, store_rounded,
    store_rounded_pairs, word_table4, word_table6, word_table8, words_at4, words_at6, words_at8,
};

/// Proof that this CPU has AVX-512 F, BW, DQ, VL, VBMI and VNNI.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// A token, if this CPU has all six.
    pub fn detect() -> Option<Self> {
        let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let mixed = is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl");
        let bytes = is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512vnni");
        (wide && mixed && bytes).then_some(Self(()))
    }
}

type F32 = __m512;

impl Simd for Avx512 {
    type F32 = F32;
    type Palette4 = Palette4;
    type Palette6 = Palette6;
    type Palette8 = Palette8;
    type Words = __m512i;
    type Sums = __m512i;
    type WordTable4 = __m512i;
    type WordTable6 = Palette6;
    type WordTable8 = Palette8;

    const TILE_COLUMNS: usize = 12;
    const FAST_INT16: bool = true;

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
        fn with_avx512<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: the token proves that the CPU has these features.
        unsafe { with_avx512(self, kernel) }
    }

    methods_proven_by_token! {
        fn splat(value: f32) -> F32;
        fn load(from: &[f32; LANES]) -> F32;
        fn store(value: F32, to: &mut [f32; LANES]);
        fn load_some(from: &[f32]) -> F32;
        fn store_some(value: F32, to: &mut [f32]);
        fn load_f16(from: &[f16; LANES]) -> F32;
        fn store_f16(value: F32, to: &mut [f16; LANES]);
        fn palette4(entries: &[f16; 16]) -> Palette4;
        fn palette6(entries: &[f16; 64]) -> Palette6;
        fn palette8(entries: &[f16; 256]) -> Palette8;
        fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4];
        fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4];
        fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4];
        fn look_up4_short(palette: &Palette4, indices: &[u8; 64]) -> [F32; 8];
        fn arrange(numbers: [F32; 8]) -> [F32; 8];
        fn palette6_short(entries: &[f16; 64]) -> Palette6;
        fn palette8_short(entries: &[f16; 256]) -> Palette8;
        fn look_up6_short(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4];
        fn look_up8_short(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4];
        fn word_table4(entries: &[i16; 16]) -> __m512i;
        fn word_table6(entries: &[i16; 64]) -> Palette6;
        fn word_table8(entries: &[i16; 256]) -> Palette8;
        fn words_at4(table: &__m512i, indices: &[u8; 64]) -> [__m512i; 4];
        fn words_at6(table: &Palette6, indices: &[u8; 48]) -> [__m512i; 2];
        fn words_at8(table: &Palette8, indices: &[u8; 64]) -> [__m512i; 2];
        fn load_words(from: &[i16; 32]) -> __m512i;
        fn store_pairs(words: [__m512i; LANES], to: &mut [[i16; 32]; LANES]);
        fn no_sums() -> __m512i;
        fn add_products(sums: __m512i, a: __m512i, b: __m512i) -> __m512i;
        fn add_products_of(sums: __m512i, a: __m512i, b: [i16; 2]) -> __m512i;
        fn float_sums(sums: __m512i) -> F32;
        fn store_rounded(numbers: F32, to: &mut [i16; LANES]);
        fn store_rounded_pairs(numbers: [F32; 2], to: &mut [[i16; 2]; LANES]);
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
        fn sum_each(blocks: [F32; 4]) -> [f32; 4];
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn splat(value: f32) -> F32 {
    _mm512_set1_ps(value)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn load(from: &[f32; LANES]) -> F32 {
    // SAFETY: the reference covers sixteen elements.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn store(value: F32, to: &mut [f32; LANES]) {
    // SAFETY: the reference covers sixteen elements.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn load_some(from: &[f32]) -> F32 {
    // SAFETY: lanes past the end of the slice are not read.
    unsafe { _mm512_maskz_loadu_ps(first_lanes(from.len()), from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn store_some(value: F32, to: &mut [f32]) {
    // SAFETY: lanes past the end of the slice are not written.
    unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first_lanes(to.len()), value) }
}

/// The mask of the first `count` lanes.
fn first_lanes(count: usize) -> __mmask16 {
    !(!0u32 << count.min(LANES)) as __mmask16
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn load_f16(from: &[f16; LANES]) -> F32 {
    // SAFETY: the reference covers sixteen elements of 16 bits.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn store_f16(value: F32, to: &mut [f16; LANES]) {
    let narrow = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value);
    // SAFETY: the reference covers sixteen elements of 16 bits.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), narrow) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn add(a: F32, b: F32) -> F32 {
    _mm512_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn sub(a: F32, b: F32) -> F32 {
    _mm512_sub_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn mul(a: F32, b: F32) -> F32 {
    _mm512_mul_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn div(a: F32, b: F32) -> F32 {
    _mm512_div_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn max(a: F32, b: F32) -> F32 {
    _mm512_max_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn min(a: F32, b: F32) -> F32 {
    _mm512_min_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn mul_add(a: F32, b: F32, c: F32) -> F32 {
    _mm512_fmadd_ps(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn sqrt(a: F32) -> F32 {
    _mm512_sqrt_ps(a)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn mul_power_of_two(a: F32, n: F32) -> F32 {
    _mm512_scalef_ps(a, n)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn round(a: F32) -> F32 {
    _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn sum(a: F32) -> f32 {
    _mm512_reduce_add_ps(a)
}

/// Within the quarters of all four at once, then over the quarters.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn sum_each([a, b, c, d]: [F32; 4]) -> [f32; 4] {
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    let quarters = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(ab, cd), _mm512_shuffle_ps::<0xEE>(ab, cd));
    let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps::<1>(quarters));
    let sums = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
    let mut out = [0.0; 4];
    // SAFETY: the array has four elements.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), sums) };
    out
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn largest(a: F32) -> f32 {
    _mm512_reduce_max_ps(a)
}

/// 4 × 4 transposes within the quarters of the registers, then a 4 × 4 transpose of the quarters.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn transpose(rows: [F32; LANES]) -> [F32; LANES] {
    let mut columns = rows;
    for four in 0..4 {
        let within = transpose_within([0, 1, 2, 3].map(|row| rows[4 * four + row]));
        (0..4).for_each(|column| columns[4 * column + four] = within[column]);
    }
    let mut out = rows;
    for column in 0..4 {
        let across = transpose_quarters([0, 1, 2, 3].map(|four| columns[4 * column + four]));
        (0..4).for_each(|quarter| out[4 * quarter + column] = across[quarter]);
    }
    out
}

/// Quarter q of register j of the result: element j of quarter q of each of the four rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn transpose_within(r: [F32; 4]) -> [F32; 4] {
    let (a0, a1) = (_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
    let (a2, a3) = (_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
    [
        _mm512_shuffle_ps::<0x44>(a0, a2),
        _mm512_shuffle_ps::<0xEE>(a0, a2),
        _mm512_shuffle_ps::<0x44>(a1, a3),
        _mm512_shuffle_ps::<0xEE>(a1, a3),
    ]
}

/// Quarter i of register q of the result: quarter q of register i.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn transpose_quarters(r: [F32; 4]) -> [F32; 4] {
    let (a0, a1) = (_mm512_shuffle_f32x4::<0x44>(r[0], r[1]), _mm512_shuffle_f32x4::<0xEE>(r[0], r[1]));
    let (a2, a3) = (_mm512_shuffle_f32x4::<0x44>(r[2], r[3]), _mm512_shuffle_f32x4::<0xEE>(r[2], r[3]));
    [
        _mm512_shuffle_f32x4::<0x88>(a0, a2),
        _mm512_shuffle_f32x4::<0xDD>(a0, a2),
        _mm512_shuffle_f32x4::<0x88>(a1, a3),
        _mm512_shuffle_f32x4::<0xDD>(a1, a3),
    ]
}
