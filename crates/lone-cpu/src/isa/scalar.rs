//! Plain Rust: what every other instruction set is tested against.

use std::array::from_fn;

use half::f16;

use super::plain_words::plain_words;
use super::{Kernel, LANES, Simd};

/// The instruction set that every CPU has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalar;

impl Simd for Scalar {
    type F32 = [f32; LANES];
    type Palette4 = [f32; 16];
    type Palette6 = [f32; 64];
    type Palette8 = [f32; 256];

    const TILE_COLUMNS: usize = 4;

    plain_words!();

    #[inline]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F32 {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::F32 {
        *from
    }

    #[inline(always)]
    fn store(self, value: Self::F32, to: &mut [f32; LANES]) {
        *to = value;
    }

    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> Self::F32 {
        from.map(f16::to_f32)
    }

    #[inline(always)]
    fn store_f16(self, value: Self::F32, to: &mut [f16; LANES]) {
        *to = value.map(f16::from_f32);
    }

    #[inline(always)]
    fn palette4(self, entries: &[f16; 16]) -> Self::Palette4 {
        entries.map(f16::to_f32)
    }

    #[inline(always)]
    fn palette6(self, entries: &[f16; 64]) -> Self::Palette6 {
        entries.map(f16::to_f32)
    }

    #[inline(always)]
    fn palette8(self, entries: &[f16; 256]) -> Self::Palette8 {
        entries.map(f16::to_f32)
    }

    #[inline(always)]
    fn look_up4(self, palette: &Self::Palette4, indices: &[u8; 32]) -> [Self::F32; 4] {
        from_fn(|block| from_fn(|i| palette[usize::from(indices[8 * block + i / 2] >> (i % 2 * 4) & 15)]))
    }

    /// Four indices in three bytes.
    #[inline(always)]
    fn look_up6(self, palette: &Self::Palette6, indices: &[u8; 48]) -> [Self::F32; 4] {
        from_fn(|block| {
            from_fn(|i| {
                let three = &indices[12 * block + i / 4 * 3..];
                let bits = u32::from_le_bytes([three[0], three[1], three[2], 0]);
                palette[(bits >> (i % 4 * 6) & 63) as usize]
            })
        })
    }

    #[inline(always)]
    fn look_up8(self, palette: &Self::Palette8, indices: &[u8; 64]) -> [Self::F32; 4] {
        from_fn(|block| from_fn(|i| palette[usize::from(indices[16 * block + i])]))
    }

    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        // Not `f32::mul_add`, which is a call into the C library where the CPU cannot do it.
        from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn sqrt(self, a: Self::F32) -> Self::F32 {
        a.map(f32::sqrt)
    }

    #[inline(always)]
    fn mul_power_of_two(self, a: Self::F32, n: Self::F32) -> Self::F32 {
        from_fn(|i| {
            let n = n[i] as i32;
            let half = n >> 1;
            a[i] * power_of_two(half) * power_of_two(n - half)
        })
    }

    #[inline(always)]
    fn round(self, a: Self::F32) -> Self::F32 {
        a.map(f32::round_ties_even)
    }

    #[inline(always)]
    fn sum(self, a: Self::F32) -> f32 {
        let eight: [f32; 8] = from_fn(|i| a[i] + a[i + 8]);
        let four: [f32; 4] = from_fn(|i| eight[i] + eight[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }

    #[inline(always)]
    fn largest(self, a: Self::F32) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }

    #[inline(always)]
    fn transpose(self, rows: [Self::F32; LANES]) -> [Self::F32; LANES] {
        from_fn(|j| from_fn(|i| rows[i][j]))
    }

    #[inline(always)]
    fn prefetch<T>(self, _at: *const T) {}
}

/// 2^n for n from -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}
