//! 16-bit numbers: looked up as f16 are, multiplied by VNNI.

use std::arch::x86_64::*;

use half::f16;

use super::look_up::{Palette6, Palette8, palette6, palette8};
pub(super) use super::look_up::{words_at4, words_at6, words_at8};
use super::{F32, LANES};

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn word_table4(entries: &[i16; 16]) -> __m512i {
    // SAFETY: the reference covers 32 bytes.
    _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(entries.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn word_table6(entries: &[i16; 64]) -> Palette6 {
    palette6(bytemuck::cast_ref::<_, [f16; 64]>(entries))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn word_table8(entries: &[i16; 256]) -> Palette8 {
    palette8(bytemuck::cast_ref::<_, [f16; 256]>(entries))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn load_words(from: &[i16; 32]) -> __m512i {
    // SAFETY: the reference covers 64 bytes.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn store_pairs(words: [__m512i; LANES], to: &mut [[i16; 32]; LANES]) {
    let mut rows = [_mm512_setzero_ps(); LANES];
    for (row, words) in rows.iter_mut().zip(words) {
        *row = _mm512_castsi512_ps(words);
    }
    for (column, to) in super::transpose(rows).into_iter().zip(to) {
        // SAFETY: the reference covers 64 bytes.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr().cast(), column) };
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn no_sums() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn add_products(sums: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_dpwssd_epi32(sums, a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn add_products_of(sums: __m512i, a: __m512i, b: [i16; 2]) -> __m512i {
    _mm512_dpwssd_epi32(sums, a, _mm512_set1_epi32(bytemuck::cast(b)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn float_sums(sums: __m512i) -> F32 {
    _mm512_cvtepi32_ps(sums)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn store_rounded(numbers: F32, to: &mut [i16; LANES]) {
    let words = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(numbers));
    // SAFETY: the reference covers 32 bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), words) };
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn store_rounded_pairs([a, b]: [F32; 2], to: &mut [[i16; 2]; LANES]) {
    let low = _mm512_and_si512(_mm512_cvtps_epi32(a), _mm512_set1_epi32(0xffff));
    let pairs = _mm512_or_si512(low, _mm512_slli_epi32::<16>(_mm512_cvtps_epi32(b)));
    // SAFETY: the reference covers 64 bytes.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), pairs) };
}
