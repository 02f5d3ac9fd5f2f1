//! Palettes by shuffles of bytes: two planes, one of the low bytes of f16 and one of the high bytes, sixteen entries a
//! register, twice the same in both its halves. 256 entries are gathered from memory instead.
//!
//! No vector operation stands in a closure: the standard library's combinators are compiled without AVX2, so closures
//! with it are not inlined into them.

use std::arch::x86_64::*;
use std::array::from_fn;

use half::f16;

use super::F32;
use crate::isa::Aligned;

/// The low bytes, the high bytes.
pub(super) type Palette4 = [__m256i; 2];
/// The same for each sixteen entries.
pub(super) type Palette6 = [Palette4; 4];
pub(super) type Palette8 = Aligned<[f32; 256]>;

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn palette4(entries: &[f16; 16]) -> Palette4 {
    let bytes = bytemuck::cast_ref::<[f16; 16], [u8; 32]>(entries);
    let low: [u8; 16] = from_fn(|i| bytes[2 * i]);
    let high: [u8; 16] = from_fn(|i| bytes[2 * i + 1]);
    [_mm256_broadcastsi128_si256(load_16(&low)), _mm256_broadcastsi128_si256(load_16(&high))]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn palette6(entries: &[f16; 64]) -> Palette6 {
    let quarters = entries.as_chunks::<16>().0;
    [palette4(&quarters[0]), palette4(&quarters[1]), palette4(&quarters[2]), palette4(&quarters[3])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn palette8(entries: &[f16; 256]) -> Palette8 {
    let mut floats = Aligned([0.0; 256]);
    for (to, from) in floats.0.as_chunks_mut().0.iter_mut().zip(entries.as_chunks().0) {
        super::store(super::load_f16(from), to);
    }
    floats
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4] {
    let halves = indices.as_chunks().0;
    let ([a, b], [c, d]) = (look_up4_half(palette, &halves[0]), look_up4_half(palette, &halves[1]));
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn look_up4_half(palette: &Palette4, indices: &[u8; 16]) -> [F32; 2] {
    let pairs = _mm256_cvtepu8_epi16(load_16(indices));
    let apart = _mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs));
    let indices = _mm256_and_si256(apart, _mm256_set1_epi8(15));
    floats(_mm256_shuffle_epi8(palette[0], indices), _mm256_shuffle_epi8(palette[1], indices))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4] {
    let halves = indices.as_chunks().0;
    let ([a, b], [c, d]) = (look_up6_half(palette, &halves[0]), look_up6_half(palette, &halves[1]));
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn look_up6_half(palette: &Palette6, indices: &[u8; 24]) -> [F32; 2] {
    let (first, last) = (indices.first_chunk(), indices.last_chunk());
    let (first, last) = (first.expect("16 of 24 bytes"), last.expect("16 of 24 bytes"));
    let indices = spread6(_mm256_set_m128i(load_16(last), load_16(first)));
    floats(look_up6_plane(palette, 0, indices), look_up6_plane(palette, 1, indices))
}

/// The bytes of one plane at these indices: of each quarter of the palette, then of the right one.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn look_up6_plane(palette: &Palette6, plane: usize, indices: __m256i) -> __m256i {
    let (odd, upper) = (_mm256_slli_epi16::<3>(indices), _mm256_slli_epi16::<2>(indices));
    let first = _mm256_blendv_epi8(
        _mm256_shuffle_epi8(palette[0][plane], indices),
        _mm256_shuffle_epi8(palette[1][plane], indices),
        odd,
    );
    let second = _mm256_blendv_epi8(
        _mm256_shuffle_epi8(palette[2][plane], indices),
        _mm256_shuffle_epi8(palette[3][plane], indices),
        odd,
    );
    _mm256_blendv_epi8(first, second, upper)
}

/// 32 indices of 6 bits as bytes. The first sixteen are the first twelve bytes of the lower half, the others the last
/// twelve of the upper half.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn spread6(bits: __m256i) -> __m256i {
    let three_of_four = _mm256_setr_epi8(
        0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, //
        4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1,
    );
    let fours = _mm256_shuffle_epi8(bits, three_of_four);
    let first = _mm256_and_si256(fours, _mm256_set1_epi32(0x3f));
    let second = _mm256_and_si256(_mm256_slli_epi32::<2>(fours), _mm256_set1_epi32(0x3f00));
    let third = _mm256_and_si256(_mm256_slli_epi32::<4>(fours), _mm256_set1_epi32(0x3f_0000));
    let fourth = _mm256_and_si256(_mm256_slli_epi32::<6>(fours), _mm256_set1_epi32(0x3f00_0000));
    _mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, fourth))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4] {
    let mut entries = [[_mm256_setzero_ps(); 2]; 4];
    for (entries, indices) in entries.as_flattened_mut().iter_mut().zip(indices.as_chunks().0) {
        let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*indices));
        let indices = _mm256_cvtepu8_epi32(bytes);
        // SAFETY: a byte is the index of one of the 256 entries.
        *entries = unsafe { _mm256_i32gather_ps::<4>(palette.0.as_ptr(), indices) };
    }
    entries
}

/// The 32 f16 with these low and high bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn floats(low: __m256i, high: __m256i) -> [F32; 2] {
    let (even, odd) = (_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high));
    [
        [_mm256_cvtph_ps(_mm256_castsi256_si128(even)), _mm256_cvtph_ps(_mm256_castsi256_si128(odd))],
        [
            _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(even)),
            _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(odd)),
        ],
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_16(from: &[u8; 16]) -> __m128i {
    // SAFETY: the reference covers sixteen bytes.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}
