//! Products of 16-bit numbers in plain Rust, for instruction sets on which they are no faster than those of f32.

use std::array::from_fn;

use super::LANES;

/// Methods and types of [`Simd`](super::Simd) that concern 16-bit numbers.
macro_rules! plain_words {
    () => {
        type Words = [i16; 32];
        type Sums = [i32; LANES];
        type WordTable4 = [i16; 16];
        type WordTable6 = [i16; 64];
        type WordTable8 = [i16; 256];

        #[inline(always)]
        fn word_table4(self, entries: &[i16; 16]) -> [i16; 16] {
            *entries
        }

        #[inline(always)]
        fn word_table6(self, entries: &[i16; 64]) -> [i16; 64] {
            *entries
        }

        #[inline(always)]
        fn word_table8(self, entries: &[i16; 256]) -> [i16; 256] {
            *entries
        }

        #[inline(always)]
        fn words_at4(self, table: &[i16; 16], indices: &[u8; 64]) -> [[i16; 32]; 4] {
            $crate::isa::plain_words::at4(table, indices)
        }

        #[inline(always)]
        fn words_at6(self, table: &[i16; 64], indices: &[u8; 48]) -> [[i16; 32]; 2] {
            $crate::isa::plain_words::at6(table, indices)
        }

        #[inline(always)]
        fn words_at8(self, table: &[i16; 256], indices: &[u8; 64]) -> [[i16; 32]; 2] {
            bytemuck::cast(indices.map(|index| table[usize::from(index)]))
        }

        #[inline(always)]
        fn load_words(self, from: &[i16; 32]) -> [i16; 32] {
            *from
        }

        #[inline(always)]
        fn store_pairs(self, words: [[i16; 32]; LANES], to: &mut [[i16; 32]; LANES]) {
            *to = std::array::from_fn(|pair| std::array::from_fn(|at| words[at / 2][2 * pair + at % 2]));
        }

        #[inline(always)]
        fn no_sums(self) -> [i32; LANES] {
            [0; LANES]
        }

        #[inline(always)]
        fn add_products(self, sums: [i32; LANES], a: [i16; 32], b: [i16; 32]) -> [i32; LANES] {
            $crate::isa::plain_words::add_products(sums, a, b)
        }

        #[inline(always)]
        fn add_products_of(self, sums: [i32; LANES], a: [i16; 32], b: [i16; 2]) -> [i32; LANES] {
            $crate::isa::plain_words::add_products(sums, a, std::array::from_fn(|i| b[i % 2]))
        }

        #[inline(always)]
        fn float_sums(self, sums: [i32; LANES]) -> Self::F32 {
            self.load(&sums.map(|sum| sum as f32))
        }
    };
}
pub(super) use plain_words;

/// Four indices in two bytes.
#[inline(always)]
pub(super) fn at4(table: &[i16; 16], indices: &[u8; 64]) -> [[i16; 32]; 4] {
    from_fn(|i| from_fn(|four| table[usize::from(indices[2 * four + i / 2] >> (i % 2 * 4) & 15)]))
}

/// Four indices in three bytes.
#[inline(always)]
pub(super) fn at6(table: &[i16; 64], indices: &[u8; 48]) -> [[i16; 32]; 2] {
    from_fn(|half| {
        from_fn(|i| {
            let three = &indices[24 * half + i / 4 * 3..];
            let bits = u32::from_le_bytes([three[0], three[1], three[2], 0]);
            table[(bits >> (i % 4 * 6) & 63) as usize]
        })
    })
}

#[inline(always)]
pub(super) fn add_products(sums: [i32; LANES], a: [i16; 32], b: [i16; 32]) -> [i32; LANES] {
    let product = |at: usize| i32::from(a[at]) * i32::from(b[at]);
    from_fn(|i| sums[i] + product(2 * i) + product(2 * i + 1))
}
