//! Palettes by table lookups of bytes: two planes, one of the low bytes of f16 and one of the high bytes.

use std::arch::aarch64::*;

use half::f16;

use super::F32;

/// The low bytes, the high bytes.
pub(super) type Palette4 = [uint8x16_t; 2];
pub(super) type Palette6 = [uint8x16x4_t; 2];
/// 64 entries at a time.
pub(super) type Palette8 = [Palette6; 4];

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn palette4(entries: &[f16; 16]) -> Palette4 {
    // SAFETY: sixteen times two bytes.
    let uint8x16x2_t(low, high) = unsafe { vld2q_u8(entries.as_ptr().cast()) };
    [low, high]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn palette6(entries: &[f16; 64]) -> Palette6 {
    let sixteens = entries.as_chunks().0;
    let [a_low, a_high] = palette4(&sixteens[0]);
    let [b_low, b_high] = palette4(&sixteens[1]);
    let [c_low, c_high] = palette4(&sixteens[2]);
    let [d_low, d_high] = palette4(&sixteens[3]);
    [uint8x16x4_t(a_low, b_low, c_low, d_low), uint8x16x4_t(a_high, b_high, c_high, d_high)]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn palette8(entries: &[f16; 256]) -> Palette8 {
    let quarters = entries.as_chunks().0;
    [palette6(&quarters[0]), palette6(&quarters[1]), palette6(&quarters[2]), palette6(&quarters[3])]
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn look_up4(palette: &Palette4, indices: &[u8; 32]) -> [F32; 4] {
    let mut entries = [[vdupq_n_f32(0.0); 4]; 4];
    for (entries, pairs) in entries.as_chunks_mut::<2>().0.iter_mut().zip(indices.as_chunks().0) {
        let pairs = load_16(pairs);
        let (even, odd) = (vandq_u8(pairs, vdupq_n_u8(15)), vshrq_n_u8::<4>(pairs));
        let (first, second) = (vzip1q_u8(even, odd), vzip2q_u8(even, odd));
        entries[0] = floats(vqtbl1q_u8(palette[0], first), vqtbl1q_u8(palette[1], first));
        entries[1] = floats(vqtbl1q_u8(palette[0], second), vqtbl1q_u8(palette[1], second));
    }
    entries
}

/// The last twelve bytes are read with the four before them.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn look_up6(palette: &Palette6, indices: &[u8; 48]) -> [F32; 4] {
    let sixteen = |start: usize| indices[start..].first_chunk().expect("sixteen of 48 bytes");
    let last = load_16(sixteen(32));
    [
        look_up6_sixteen(palette, load_16(sixteen(0))),
        look_up6_sixteen(palette, load_16(sixteen(12))),
        look_up6_sixteen(palette, load_16(sixteen(24))),
        look_up6_sixteen(palette, vextq_u8::<4>(last, last)),
    ]
}

/// The entries at the sixteen indices in the first twelve bytes.
#[inline]
#[target_feature(enable = "neon")]
fn look_up6_sixteen(palette: &Palette6, bits: uint8x16_t) -> F32 {
    let indices = spread6(bits);
    floats(vqtbl4q_u8(palette[0], indices), vqtbl4q_u8(palette[1], indices))
}

/// The sixteen indices of 6 bits in the first twelve bytes, as bytes.
#[inline]
#[target_feature(enable = "neon")]
fn spread6(bits: uint8x16_t) -> uint8x16_t {
    const THREE_OF_FOUR: [u8; 16] = [0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255];
    let fours = vreinterpretq_u32_u8(vqtbl1q_u8(bits, load_16(&THREE_OF_FOUR)));
    let first = vandq_u32(fours, vdupq_n_u32(0x3f));
    let second = vandq_u32(vshlq_n_u32::<2>(fours), vdupq_n_u32(0x3f00));
    let third = vandq_u32(vshlq_n_u32::<4>(fours), vdupq_n_u32(0x3f_0000));
    let fourth = vandq_u32(vshlq_n_u32::<6>(fours), vdupq_n_u32(0x3f00_0000));
    vreinterpretq_u8_u32(vorrq_u32(vorrq_u32(first, second), vorrq_u32(third, fourth)))
}

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn look_up8(palette: &Palette8, indices: &[u8; 64]) -> [F32; 4] {
    let mut entries = [[vdupq_n_f32(0.0); 4]; 4];
    for (entries, indices) in entries.iter_mut().zip(indices.as_chunks().0) {
        let indices = load_16(indices);
        *entries = floats(look_up8_plane(palette, 0, indices), look_up8_plane(palette, 1, indices));
    }
    entries
}

/// The bytes of one plane. An index beyond its table leaves a lane as it is, so each quarter fills in its own.
#[inline]
#[target_feature(enable = "neon")]
fn look_up8_plane(palette: &Palette8, plane: usize, indices: uint8x16_t) -> uint8x16_t {
    let mut bytes = vdupq_n_u8(0);
    for (quarter, palette) in (0..).zip(palette) {
        bytes = vqtbx4q_u8(bytes, palette[plane], vsubq_u8(indices, vdupq_n_u8(64 * quarter)));
    }
    bytes
}

/// The sixteen f16 with these low and high bytes.
#[inline]
#[target_feature(enable = "neon")]
fn floats(low: uint8x16_t, high: uint8x16_t) -> F32 {
    let first = vreinterpretq_u16_u8(vzip1q_u8(low, high));
    let second = vreinterpretq_u16_u8(vzip2q_u8(low, high));
    [
        vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(first))),
        vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(first))),
        vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(second))),
        vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(second))),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn load_16(from: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference covers sixteen bytes.
    unsafe { vld1q_u8(from.as_ptr()) }
}
