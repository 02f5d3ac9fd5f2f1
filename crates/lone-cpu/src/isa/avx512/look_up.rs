//! Palettes by permutations of a whole register: sixteen entries as f32, more as two planes, one of the low bytes of
//! f16 and one of the high bytes.
//!
//! Conversions from f16 cost as much as the permutations. Where all entries are bf16 numbers too, the planes hold the
//! bytes of bf16, which a shift and a mask make f32 of. Sixteen such entries are looked up as bf16, twice as many at a time.

use std::arch::x86_64::*;

use half::f16;

use super::{F32, LANES};

/// Sixteen f32, and their upper halves twice.
pub(super) type Palette4 = (F32, __m512i);
/// The low bytes, the high bytes.
pub(super) type Palette6 = [__m512i; 2];
/// The same, 64 entries a register.
pub(super) type Palette8 = [[__m512i; 4]; 2];

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn palette4(entries: &[f16; 16]) -> Palette4 {
    let halves = upper_halves(entries);
    // SAFETY: the array has 32 bytes.
    let halves = unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) };
    (super::load_f16(entries), _mm512_broadcast_i64x4(halves))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn palette6(entries: &[f16; 64]) -> Palette6 {
    const LOW: [u8; 64] = every_second_byte(0);
    const HIGH: [u8; 64] = every_second_byte(1);
    let bytes = bytemuck::cast_ref::<[f16; 64], [u8; 128]>(entries);
    let (first, second) = bytes.split_at(64);
    let (first, second) =
        (load_64(first.try_into().expect("half")), load_64(second.try_into().expect("half")));
    [
        _mm512_permutex2var_epi8(first, load_64(&LOW), second),
        _mm512_permutex2var_epi8(first, load_64(&HIGH), second),
    ]
}

/// Positions `first`, `first + 2`, … of 128 bytes.
const fn every_second_byte(first: u8) -> [u8; 64] {
    let mut positions = [0; 64];
    let mut i = 0;
    while i < 64 {
        positions[i] = first + 2 * i as u8;
        i += 1;
    }
    positions
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn palette8(entries: &[f16; 256]) -> Palette8 {
    let mut planes = [[_mm512_setzero_si512(); 4]; 2];
    for (quarter, entries) in entries.as_chunks::<64>().0.iter().enumerate() {
        let [low, high] = palette6(entries);
        planes[0][quarter] = low;
        planes[1][quarter] = high;
    }
    planes
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn palette6_short(entries: &[f16; 64]) -> Palette6 {
    palette6(bytemuck::cast_ref(&upper_halves(entries)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn palette8_short(entries: &[f16; 256]) -> Palette8 {
    palette8(bytemuck::cast_ref(&upper_halves(entries)))
}

/// The entries as bf16, whose bytes take the place of those of f16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn upper_halves<const N: usize>(entries: &[f16; N]) -> [u16; N] {
    let mut halves = [0; N];
    for (halves, entries) in halves.as_chunks_mut::<LANES>().0.iter_mut().zip(entries.as_chunks().0) {
        let bits = _mm512_castps_si512(super::load_f16(entries));
        let upper = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits));
        // SAFETY: the reference covers sixteen elements of 16 bits.
        unsafe { _mm256_storeu_si256(halves.as_mut_ptr().cast(), upper) };
    }
    halves
}

/// Lane i of a permutation looks at the lowest four bits of its own, which is where index i of eight bytes goes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4] {
    let shifts = _mm512_setr_epi64(
        0x0400000000,
        0x0c00000008,
        0x1400000010,
        0x1c00000018,
        0x2400000020,
        0x2c00000028,
        0x3400000030,
        0x3c00000038,
    );
    let mut entries = [_mm512_setzero_ps(); 4];
    for (entries, sixteen) in entries.iter_mut().zip(indices.as_chunks::<8>().0) {
        let bits = _mm512_set1_epi64(i64::from_le_bytes(*sixteen));
        *entries = _mm512_permutexvar_ps(_mm512_multishift_epi64_epi8(shifts, bits), palette.0);
    }
    entries
}

/// 16 bits at a time, which are four indices. A permutation looks at the lowest five, of which the entries make one the same
/// as the other, so that an index needs a shift and no mask. The first of those in lower halves come first, then the
/// second, the third and the fourth, then those in upper halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up4_short(palette: &Palette4, indices: &[u8; 64]) -> [F32; 8] {
    let [first, second, third, fourth] = words_at4(&palette.1, indices);
    let ([a, e], [b, f], [c, g], [d, h]) = (halves(first), halves(second), halves(third), halves(fourth));
    [a, b, c, d, e, f, g, h]
}

/// The 16-bit numbers of sixteen, which the table has twice: every fourth from each of the first four on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn words_at4(table: &__m512i, indices: &[u8; 64]) -> [__m512i; 4] {
    let fours = load_64(indices);
    [
        _mm512_permutexvar_epi16(fours, *table),
        _mm512_permutexvar_epi16(_mm512_srli_epi16::<4>(fours), *table),
        _mm512_permutexvar_epi16(_mm512_srli_epi16::<8>(fours), *table),
        _mm512_permutexvar_epi16(_mm512_srli_epi16::<12>(fours), *table),
    ]
}

/// Every eighth number from each of the first eight on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn arrange(numbers: [F32; 8]) -> [F32; 8] {
    evens_and_odds(evens_and_odds(evens_and_odds(numbers)))
}

/// Of two blocks at a time the numbers at even places, then those at odd places.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn evens_and_odds(numbers: [F32; 8]) -> [F32; 8] {
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    let mut out = numbers;
    for (i, two) in numbers.as_chunks::<2>().0.iter().enumerate() {
        out[i] = _mm512_permutex2var_ps(two[0], even, two[1]);
        out[4 + i] = _mm512_permutex2var_ps(two[0], odd, two[1]);
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4] {
    floats(words_at6(palette, indices))
}

/// The 16-bit numbers with the low and high bytes that a palette holds.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn words_at6(palette: &Palette6, indices: &[u8; 48]) -> [__m512i; 2] {
    const SPREAD: [u8; 64] = six_bytes_of_eight();
    // SAFETY: the mask names as many bytes as the array has.
    let bits = unsafe { _mm512_maskz_loadu_epi8(0xFFFF_FFFF_FFFF, indices.as_ptr().cast()) };
    let spread = _mm512_permutexvar_epi8(load_64(&SPREAD), bits);
    let shifts = _mm512_set1_epi64(0x2a24_1e18_120c_0600);
    let indices = _mm512_multishift_epi64_epi8(shifts, spread);
    words(_mm512_permutexvar_epi8(indices, palette[0]), _mm512_permutexvar_epi8(indices, palette[1]))
}

/// For each eight bytes the six that hold their eight indices, in the order that [`words`] wants.
const fn six_bytes_of_eight() -> [u8; 64] {
    let mut positions = [0; 64];
    let mut i = 0;
    while i < 64 {
        let eight = i / 16 + i / 8 % 2 * 4;
        positions[i] = if i % 8 < 6 { (6 * eight + i % 8) as u8 } else { 0 };
        i += 1;
    }
    positions
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4] {
    floats(words_at8(palette, indices))
}

/// As [`words_at6`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn words_at8(palette: &Palette8, indices: &[u8; 64]) -> [__m512i; 2] {
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    let indices = _mm512_permutexvar_epi64(order, load_64(indices));
    words(look_up8_plane(&palette[0], indices), look_up8_plane(&palette[1], indices))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up6_short(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4] {
    const SPREAD: [u8; 64] = six_bytes_of_two_fours();
    // SAFETY: the mask names as many bytes as the array has.
    let bits = unsafe { _mm512_maskz_loadu_epi8(0xFFFF_FFFF_FFFF, indices.as_ptr().cast()) };
    let spread = _mm512_permutexvar_epi8(load_64(&SPREAD), bits);
    // From either four in turn: the second begins at bit 24.
    let shifts = _mm512_set1_epi64(0x2a12_240c_1e06_1800);
    let indices = _mm512_multishift_epi64_epi8(shifts, spread);
    short_floats(_mm512_permutexvar_epi8(indices, palette[0]), _mm512_permutexvar_epi8(indices, palette[1]))
}

/// For each eight bytes the six that hold the eight indices which [`short_floats`] wants there: four, and four that
/// come sixteen later.
const fn six_bytes_of_two_fours() -> [u8; 64] {
    let mut positions = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (quarter, half, byte) = (i / 16, i / 8 % 2, i % 8);
        let four = 3 * quarter + 24 * half;
        positions[i] = match byte {
            0..3 => four + byte,
            3..6 => four + 12 + byte - 3,
            _ => 0,
        } as u8;
        i += 1;
    }
    positions
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up8_short(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4] {
    const ORDER: [u8; 64] = two_fours_in_turn();
    let indices = _mm512_permutexvar_epi8(load_64(&ORDER), load_64(indices));
    short_floats(look_up8_plane(&palette[0], indices), look_up8_plane(&palette[1], indices))
}

/// Which of 64 bytes [`short_floats`] wants where.
const fn two_fours_in_turn() -> [u8; 64] {
    let mut positions = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (quarter, half, pair, odd) = (i / 16, i / 8 % 2, i / 2 % 4, i % 2);
        positions[i] = (32 * half + 16 * odd + 4 * quarter + pair) as u8;
        i += 1;
    }
    positions
}

/// The bytes of one plane at these indices.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn look_up8_plane(plane: &[__m512i; 4], indices: __m512i) -> __m512i {
    let first = _mm512_permutex2var_epi8(plane[0], indices, plane[1]);
    let second = _mm512_permutex2var_epi8(plane[2], indices, plane[3]);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(indices), first, second)
}

/// The numbers with these low and high bytes; eight follow each other where eight bytes do, and the eights come in the order
/// 0, 4, 1, 5, 2, 6, 3, 7.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn words(low: __m512i, high: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)]
}

/// 64 f16 in f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn floats([first, second]: [__m512i; 2]) -> [F32; 4] {
    [
        _mm512_cvtph_ps(_mm512_castsi512_si256(first)),
        _mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(first)),
        _mm512_cvtph_ps(_mm512_castsi512_si256(second)),
        _mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(second)),
    ]
}

/// The bf16 with these low and high bytes. Byte 16 q + 8 h + 2 p + o becomes number 32 h + 16 o + 4 q + p, so that the two
/// bf16 of a lane belong to two blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn short_floats(low: __m512i, high: __m512i) -> [F32; 4] {
    let [first, second] = words(low, high);
    let ([a, b], [c, d]) = (halves(first), halves(second));
    [a, b, c, d]
}

/// The lower and the upper bf16 of each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn halves(pairs: __m512i) -> [F32; 2] {
    let upper = _mm512_set1_epi32(0xFFFF_0000_u32 as i32);
    [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs)), _mm512_castsi512_ps(_mm512_and_si512(pairs, upper))]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn load_64(from: &[u8; 64]) -> __m512i {
    // SAFETY: the reference covers 64 bytes.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}
