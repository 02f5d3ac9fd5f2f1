//! Palettes by shuffles of bytes: two planes, one of the low bytes of f16 and one of the high bytes, sixteen entries a
//! register, twice the same in both its halves. 256 entries are loaded from memory one by one instead.
//!
//! Conversions from f16 cost more than the shuffles of sixteen entries. Where all of them are bf16 numbers too, their
//! planes hold the bytes of bf16, which a shift and a mask make f32 of.
//!
//! No vector operation stands in a closure: the standard library's combinators are compiled without AVX2, so closures
//! with it are not inlined into them.

use std::arch::x86_64::*;
use std::array::from_fn;

use half::f16;

use super::F32;
use crate::isa::{Aligned, HighBytes, LANES, TwelveBitsChunk};

/// The low bytes, the high bytes.
type Planes = [__m256i; 2];
/// Those of f16, those of bf16.
pub(super) type Palette4 = [Planes; 2];
/// Those of f16, for each sixteen entries.
pub(super) type Palette6 = [Planes; 4];
pub(super) type Palette8 = Aligned<[f32; 256]>;

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn palette4(entries: &[f16; 16]) -> Palette4 {
    [planes(bytemuck::cast_ref(entries)), planes(&upper_halves(entries))]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn planes(entries: &[u16; 16]) -> Planes {
    let low: [u8; 16] = from_fn(|i| entries[i].to_le_bytes()[0]);
    let high: [u8; 16] = from_fn(|i| entries[i].to_le_bytes()[1]);
    [_mm256_broadcastsi128_si256(load_16(&low)), _mm256_broadcastsi128_si256(load_16(&high))]
}

/// The upper halves of the entries as f32, which are bf16.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn upper_halves(entries: &[f16; 16]) -> [u16; 16] {
    let mut entries_f32 = [0.0; LANES];
    super::store(super::load_f16(entries), &mut entries_f32);
    entries_f32.map(|entry| (entry.to_bits() >> 16) as u16)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn palette6(entries: &[f16; 64]) -> Palette6 {
    let quarters: &[[u16; 16]; 4] = bytemuck::cast_ref(entries);
    [planes(&quarters[0]), planes(&quarters[1]), planes(&quarters[2]), planes(&quarters[3])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn palette8(entries: &[f16; 256]) -> Palette8 {
    let mut floats = Aligned([0.0; 256]);
    for (to, from) in floats.0.as_chunks_mut().0.iter_mut().zip(entries.as_chunks().0) {
        super::store(super::load_f16(from), to);
    }
    floats
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4] {
    let halves = indices.as_chunks().0;
    let ([a, b], [c, d]) = (look_up4_half(palette, &halves[0]), look_up4_half(palette, &halves[1]));
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn look_up4_half(palette: &Palette4, indices: &[u8; 16]) -> [F32; 2] {
    let pairs = _mm256_cvtepu8_epi16(load_16(indices));
    let apart = _mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs));
    let indices = _mm256_and_si256(apart, _mm256_set1_epi8(15));
    let [low, high] = palette[0];
    floats(_mm256_shuffle_epi8(low, indices), _mm256_shuffle_epi8(high, indices))
}

/// 64 at a time: first those in the lower halves of bytes, then those in the upper halves.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn look_up4_short(palette: &Palette4, indices: &[u8; 64]) -> [F32; 8] {
    let halves = indices.as_chunks().0;
    let ([a, b, c, d], [e, f, g, h]) =
        (look_up4_short_half(palette, &halves[0]), look_up4_short_half(palette, &halves[1]));
    [a, b, c, d, e, f, g, h]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn look_up4_short_half(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4] {
    let (bytes, fifteen) = (load_32(indices), _mm256_set1_epi8(15));
    let first = _mm256_and_si256(bytes, fifteen);
    let second = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), fifteen);
    let [low, high] = palette[1];
    let [a, b] = short_floats(_mm256_shuffle_epi8(low, first), _mm256_shuffle_epi8(high, first));
    let [c, d] = short_floats(_mm256_shuffle_epi8(low, second), _mm256_shuffle_epi8(high, second));
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn arrange(numbers: [F32; 8]) -> [F32; 8] {
    let [a, b, c, d, e, f, g, h] = numbers;
    let ([a, b, c, d], [e, f, g, h]) = (arrange_half([a, b, c, d]), arrange_half([e, f, g, h]));
    [a, b, c, d, e, f, g, h]
}

/// 64 numbers as `look_up4_short_half` gives out entries.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn arrange_half([a, b, c, d]: [F32; 4]) -> [F32; 4] {
    let ([a, e, c, g], [b, f, d, h]) = (every_fourth(a, c), every_fourth(b, d));
    [[a, c], [b, d], [e, g], [f, h]]
}

/// Of sixteen numbers `a` and sixteen numbers `b` every fourth from each of the first four on, those of `a` in lower halves.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn every_fourth(a: F32, b: F32) -> [__m256; 4] {
    let fours = [
        _mm256_permute2f128_ps::<0x20>(a[0], b[0]),
        _mm256_permute2f128_ps::<0x31>(a[0], b[0]),
        _mm256_permute2f128_ps::<0x20>(a[1], b[1]),
        _mm256_permute2f128_ps::<0x31>(a[1], b[1]),
    ];
    let (first, second) = (_mm256_unpacklo_ps(fours[0], fours[1]), _mm256_unpacklo_ps(fours[2], fours[3]));
    let (third, fourth) = (_mm256_unpackhi_ps(fours[0], fours[1]), _mm256_unpackhi_ps(fours[2], fours[3]));
    [
        _mm256_shuffle_ps::<0x44>(first, second),
        _mm256_shuffle_ps::<0xEE>(first, second),
        _mm256_shuffle_ps::<0x44>(third, fourth),
        _mm256_shuffle_ps::<0xEE>(third, fourth),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4] {
    let halves = indices.as_chunks().0;
    let ([a, b], [c, d]) = (look_up6_half(palette, &halves[0]), look_up6_half(palette, &halves[1]));
    [a, b, c, d]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn look_up6_half(palette: &Palette6, indices: &[u8; 24]) -> [F32; 2] {
    let indices = spread6(indices);
    floats(look_up6_plane(palette, 0, indices), look_up6_plane(palette, 1, indices))
}

/// The bytes of one plane at these indices. A shuffle gives zero where the highest bit is set, so that of two quarters one or
/// the other remains; of these, the one that bit 4 says.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn look_up6_plane(palette: &Palette6, plane: usize, indices: __m256i) -> __m256i {
    let lower = _mm256_add_epi8(indices, _mm256_set1_epi8(0x60));
    let upper = _mm256_xor_si256(lower, _mm256_set1_epi8(-128));
    let even = _mm256_or_si256(
        _mm256_shuffle_epi8(palette[0][plane], lower),
        _mm256_shuffle_epi8(palette[2][plane], upper),
    );
    let odd = _mm256_or_si256(
        _mm256_shuffle_epi8(palette[1][plane], lower),
        _mm256_shuffle_epi8(palette[3][plane], upper),
    );
    _mm256_blendv_epi8(even, odd, _mm256_slli_epi16::<3>(indices))
}

/// 32 indices of 6 bits as bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn spread6(indices: &[u8; 24]) -> __m256i {
    let (first, last) = (indices.first_chunk(), indices.last_chunk());
    let (first, last) = (first.expect("16 of 24 bytes"), last.expect("16 of 24 bytes"));
    let bits = _mm256_set_m128i(load_16(last), load_16(first));
    // Three bytes hold four indices; the first two begin with two of them, the last two end with the others.
    let twos = _mm256_setr_epi8(
        0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, //
        4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15,
    );
    let twos = _mm256_shuffle_epi8(bits, twos);
    let twos = _mm256_blend_epi16::<0b10101010>(twos, _mm256_srli_epi16::<4>(twos));
    let first = _mm256_and_si256(twos, _mm256_set1_epi16(0x003f));
    let second = _mm256_and_si256(_mm256_slli_epi16::<2>(twos), _mm256_set1_epi16(0x3f00));
    _mm256_or_si256(first, second)
}

/// Entries are loaded one by one: on some CPUs a gather takes twice as long, and shuffles of sixteen times sixteen entries
/// take longer too.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4] {
    let mut entries = [[_mm256_setzero_ps(); 2]; 4];
    for (entries, indices) in entries.as_flattened_mut().iter_mut().zip(indices.as_chunks().0) {
        let bytes = u64::from_le_bytes(*indices);
        let mut eight = [0.0; 8];
        for (i, entry) in (0..).zip(&mut eight) {
            let index = _bextr_u64(bytes, 8 * i, 8) as usize;
            // SAFETY: eight bits are the index of one of the 256 entries.
            *entry = *unsafe { palette.0.get_unchecked(index) };
        }
        let [a, b, c, d, e, f, g, h] = eight;
        *entries = _mm256_setr_ps(a, b, c, d, e, f, g, h);
    }
    entries
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
pub(super) fn twelve_bits(high: &HighBytes, chunk: &TwelveBitsChunk) -> [F32; 4] {
    let (parts, fifteen) = (chunk.as_chunks().0, _mm256_set1_epi8(15));
    let (places, high) = (load_32(&parts[2]), _mm256_broadcastsi128_si256(load_16(high)));
    let first = _mm256_and_si256(places, fifteen);
    let second = _mm256_and_si256(_mm256_srli_epi16::<4>(places), fifteen);
    let [a, b] = short_floats(load_32(&parts[0]), _mm256_shuffle_epi8(high, first));
    let [c, d] = short_floats(load_32(&parts[1]), _mm256_shuffle_epi8(high, second));
    [a, b, c, d]
}

/// The 32 f16 with these low and high bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
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

/// The 32 bf16 with these low and high bytes: every second one of the first eight of both halves, the others of them, and the
/// same of the last eight.
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn short_floats(low: __m256i, high: __m256i) -> [F32; 2] {
    let upper = _mm256_set1_epi32(0xffff_0000_u32 as i32);
    let (first, second) = (_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high));
    [
        [
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(first)),
            _mm256_castsi256_ps(_mm256_and_si256(first, upper)),
        ],
        [
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(second)),
            _mm256_castsi256_ps(_mm256_and_si256(second, upper)),
        ],
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn load_16(from: &[u8; 16]) -> __m128i {
    // SAFETY: the reference covers sixteen bytes.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1")]
fn load_32(from: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers 32 bytes.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}
