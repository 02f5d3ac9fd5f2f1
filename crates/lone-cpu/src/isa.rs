//! Instruction sets: tokens that prove the CPU has one, and the vector operations kernels are written in.
//!
//! A token ([`Avx2`], …) can only be made by its `detect`, so a value of the type is proof that its
//! instructions may run; that is what makes the safe methods of `Simd` sound. Kernels are written once,
//! over `S: Simd`, in blocks of sixteen f32 however wide the registers are, and reach an instruction set
//! through `Isa::run`, which compiles one copy of the kernel per set.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain_words;
mod scalar;

use std::fmt;

use half::f16;

#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub use {avx2::Avx2, avx512::Avx512};

/// How many f32 a block holds; every instruction set's registers divide it.
pub(crate) const LANES: usize = 16;

/// Bytes that memory is fetched in.
pub(crate) const CACHE_LINE: usize = 64;

/// The high bytes of a palette of bf16 numbers.
pub(crate) type HighBytes = [u8; 16];

/// 64 bf16 numbers: their low bytes, then the places of their high bytes among sixteen, those of the first 32 numbers in the
/// lower halves of bytes and those of the others in the upper halves. Number i of 32 is at [`TWELVE_BITS_ORDER`]`[i]`.
pub(crate) type TwelveBitsChunk = [u8; 96];

/// The order in which AVX2 makes f32 of bytes with the fewest instructions.
pub(crate) const TWELVE_BITS_ORDER: [u8; 32] = [
    0, 2, 4, 6, 16, 18, 20, 22, 1, 3, 5, 7, 17, 19, 21, 23, //
    8, 10, 12, 14, 24, 26, 28, 30, 9, 11, 13, 15, 25, 27, 29, 31,
];

/// Something that begins with a cache line, so that none of its blocks lies across two.
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// An instruction set that this CPU has.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust, for CPUs with nothing better and as the others' reference.
    Scalar(Scalar),
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 F, BW, DQ, VL, VBMI and VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Isa {
    /// The widest instruction set of this CPU.
    pub fn detect() -> Self {
        Self::available().last().expect("scalar code runs everywhere")
    }

    /// Every instruction set of this CPU, scalar first, the widest last.
    pub fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let wider = [Avx2::detect().map(Self::Avx2), Avx512::detect().map(Self::Avx512)];
        #[cfg(target_arch = "aarch64")]
        let wider = [Neon::detect().map(Self::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let wider = [None];
        std::iter::once(Self::Scalar(Scalar)).chain(wider.into_iter().flatten())
    }

    /// The instruction set of that name (`scalar`, `avx2`, `avx512`, `neon`), if this CPU has it.
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|isa| isa.name() == name)
    }

    /// The lower-case name that kernels are printed with.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        }
    }

    /// [`Simd::TILE_COLUMNS`]
    pub(crate) fn tile_columns(self) -> usize {
        match self {
            Self::Scalar(_) => Scalar::TILE_COLUMNS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::TILE_COLUMNS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::TILE_COLUMNS,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Neon::TILE_COLUMNS,
        }
    }

    /// [`Simd::LOOKS_UP_SLOWLY`]
    pub(crate) fn looks_up_slowly(self) -> bool {
        match self {
            Self::Scalar(_) => Scalar::LOOKS_UP_SLOWLY,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::LOOKS_UP_SLOWLY,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::LOOKS_UP_SLOWLY,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Neon::LOOKS_UP_SLOWLY,
        }
    }

    /// Whether it multiplies whole numbers of 16 bits faster than f32.
    pub fn has_fast_int16(self) -> bool {
        match self {
            Self::Scalar(_) => Scalar::FAST_INT16,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::FAST_INT16,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::FAST_INT16,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Neon::FAST_INT16,
        }
    }

    /// Runs a kernel compiled for this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Scalar(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => simd.run(kernel),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Four and four.
#[inline(always)]
pub(crate) fn join<T>([a, b, c, d]: [T; 4], [e, f, g, h]: [T; 4]) -> [T; 8] {
    [a, b, c, d, e, f, g, h]
}

/// A computation written over the vector operations of any instruction set.
///
/// `run`, and whatever it calls with `simd`, is `#[inline(always)]`: only code inlined into [`Simd::run`] is
/// compiled with the set's instructions.
pub(crate) trait Kernel {
    /// What it returns.
    type Output;

    /// Computes with the instructions that `simd` stands for.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The operations of one instruction set on blocks of sixteen f32. Rounding is to nearest, ties to even.
pub(crate) trait Simd: Copy {
    /// Sixteen f32.
    type F32: Copy;
    /// A palette of sixteen entries, ready for lookups.
    type Palette4;
    /// A palette of 64 entries.
    type Palette6;
    /// A palette of 256 entries.
    type Palette8;

    /// How many columns of a matrix product fit in registers, a block of rows each.
    const TILE_COLUMNS: usize;

    /// Whether lookups in palettes of 64 and 256 entries take longer than reading the entries in [`Simd::twelve_bits`].
    const LOOKS_UP_SLOWLY: bool = false;

    /// Runs a kernel with the instruction set enabled in the code the compiler makes of it.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// `value` sixteen times.
    fn splat(self, value: f32) -> Self::F32;
    /// Reads a block.
    fn load(self, from: &[f32; LANES]) -> Self::F32;
    /// Writes a block.
    fn store(self, value: Self::F32, to: &mut [f32; LANES]);
    /// Reads a block of f16, exactly.
    fn load_f16(self, from: &[f16; LANES]) -> Self::F32;
    /// Writes a block as f16; beyond its range is infinity, NaN stays NaN.
    fn store_f16(self, value: Self::F32, to: &mut [f16; LANES]);

    /// Makes a palette ready.
    fn palette4(self, entries: &[f16; 16]) -> Self::Palette4;
    /// Makes a palette ready.
    fn palette6(self, entries: &[f16; 64]) -> Self::Palette6;
    /// Makes a palette ready.
    fn palette8(self, entries: &[f16; 256]) -> Self::Palette8;
    /// The entries at 64 indices of 4 bits, the first in the lowest bits, exactly.
    fn look_up4(self, palette: &Self::Palette4, indices: &[u8; 32]) -> [Self::F32; 4];
    /// As `look_up4`, for a stream of 6 bits each.
    fn look_up6(self, palette: &Self::Palette6, indices: &[u8; 48]) -> [Self::F32; 4];
    /// As `look_up4`, for a byte each.
    fn look_up8(self, palette: &Self::Palette8, indices: &[u8; 64]) -> [Self::F32; 4];

    /// The entries, which are bf16 numbers too, at 128 indices, in the order in which [`Simd::arrange`] puts 128 numbers.
    #[inline(always)]
    fn look_up4_short(self, palette: &Self::Palette4, indices: &[u8; 64]) -> [Self::F32; 8] {
        let (first, second) = indices.split_at(32);
        let halves = [first, second].map(|half| half.first_chunk().expect("half of them"));
        join(self.look_up4(palette, halves[0]), self.look_up4(palette, halves[1]))
    }

    /// 128 numbers in the order in which `look_up4_short` gives out entries.
    #[inline(always)]
    fn arrange(self, numbers: [Self::F32; 8]) -> [Self::F32; 8] {
        numbers
    }

    /// Makes a palette ready for [`Simd::look_up6_short`]; its entries are bf16 numbers too.
    #[inline(always)]
    fn palette6_short(self, entries: &[f16; 64]) -> Self::Palette6 {
        self.palette6(entries)
    }

    /// Makes a palette ready for [`Simd::look_up8_short`]; its entries are bf16 numbers too.
    #[inline(always)]
    fn palette8_short(self, entries: &[f16; 256]) -> Self::Palette8 {
        self.palette8(entries)
    }

    /// As `look_up6`.
    #[inline(always)]
    fn look_up6_short(self, palette: &Self::Palette6, indices: &[u8; 48]) -> [Self::F32; 4] {
        self.look_up6(palette, indices)
    }

    /// As `look_up8`.
    #[inline(always)]
    fn look_up8_short(self, palette: &Self::Palette8, indices: &[u8; 64]) -> [Self::F32; 4] {
        self.look_up8(palette, indices)
    }

    /// The numbers of a chunk whose high bytes are among `high`.
    #[inline(always)]
    fn twelve_bits(self, high: &HighBytes, chunk: &TwelveBitsChunk) -> [Self::F32; 4] {
        let mut numbers = [[0.0; LANES]; 4];
        let (low, places) = chunk.split_at(64);
        for (i, number) in numbers.as_flattened_mut().iter_mut().enumerate() {
            let (half, at) = (i / 32, usize::from(TWELVE_BITS_ORDER[i % 32]));
            let place = places[at] >> (4 * half) & 15;
            *number = f32::from_le_bytes([0, 0, low[32 * half + at], high[usize::from(place)]]);
        }
        let [a, b, c, d] = &numbers;
        [self.load(a), self.load(b), self.load(c), self.load(d)]
    }

    /// 32 numbers of 16 bits.
    type Words: Copy;
    /// Sixteen sums of products of such numbers.
    type Sums: Copy;
    /// Sixteen of them, ready for lookups.
    type WordTable4;
    /// 64.
    type WordTable6;
    /// 256.
    type WordTable8;

    /// Whether products of such numbers are faster than those of f32.
    const FAST_INT16: bool = false;

    /// Makes a table ready.
    fn word_table4(self, entries: &[i16; 16]) -> Self::WordTable4;
    /// Makes a table ready.
    fn word_table6(self, entries: &[i16; 64]) -> Self::WordTable6;
    /// Makes a table ready.
    fn word_table8(self, entries: &[i16; 256]) -> Self::WordTable8;
    /// The entries at 128 indices of 4 bits: every fourth from the first on, from the second, the third and the fourth.
    fn words_at4(self, table: &Self::WordTable4, indices: &[u8; 64]) -> [Self::Words; 4];
    /// The entries at 64 indices of 6 bits.
    fn words_at6(self, table: &Self::WordTable6, indices: &[u8; 48]) -> [Self::Words; 2];
    /// The entries at 64 indices of a byte.
    fn words_at8(self, table: &Self::WordTable8, indices: &[u8; 64]) -> [Self::Words; 2];
    /// Reads 32 numbers.
    fn load_words(self, from: &[i16; 32]) -> Self::Words;
    /// Writes pair p of words i to place i of block p.
    fn store_pairs(self, words: [Self::Words; LANES], to: &mut [[i16; 32]; LANES]);
    /// Sixteen zeros.
    fn no_sums(self) -> Self::Sums;
    /// To sum i both products of pair i of `a` and pair i of `b`.
    fn add_products(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums;
    /// The same, `b` being the same pair for every sum.
    fn add_products_of(self, sums: Self::Sums, a: Self::Words, b: [i16; 2]) -> Self::Sums;
    /// In f32.
    fn float_sums(self, sums: Self::Sums) -> Self::F32;

    /// The nearest whole numbers of a block from -32767 to 32767.
    #[inline(always)]
    fn store_rounded(self, numbers: Self::F32, to: &mut [i16; LANES]) {
        let mut rounded = [0.0; LANES];
        self.store(self.round(numbers), &mut rounded);
        *to = rounded.map(|number| number as i16);
    }

    /// The same of sixteen pairs: the first of both blocks, then the second, and so on.
    #[inline(always)]
    fn store_rounded_pairs(self, numbers: [Self::F32; 2], to: &mut [[i16; 2]; LANES]) {
        for (i, numbers) in numbers.into_iter().enumerate() {
            let mut rounded = [0.0; LANES];
            self.store(self.round(numbers), &mut rounded);
            to.iter_mut().zip(rounded).for_each(|(to, number)| to[i] = number as i16);
        }
    }

    /// `a + b`.
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`.
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b`.
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`, correctly rounded.
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The larger of `a` and `b`; `b` where either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The smaller of `a` and `b`; `b` where either is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`, rounded once where the instruction set can, else twice.
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// The square root, correctly rounded.
    fn sqrt(self, a: Self::F32) -> Self::F32;
    /// `a * 2^n` for whole `n` from -252 to 254, at most one rounding (into the subnormals) off.
    fn mul_power_of_two(self, a: Self::F32, n: Self::F32) -> Self::F32;
    /// The nearest whole number, for |a| below 2^22.
    fn round(self, a: Self::F32) -> Self::F32;

    /// The sum of all lanes.
    fn sum(self, a: Self::F32) -> f32;
    /// The sum of all lanes of each.
    #[inline(always)]
    fn sum_each(self, blocks: [Self::F32; 4]) -> [f32; 4] {
        let mut sums = [0.0; 4];
        for (sum, block) in sums.iter_mut().zip(blocks) {
            *sum = self.sum(block);
        }
        sums
    }

    /// The largest lane; unspecified where one is NaN.
    fn largest(self, a: Self::F32) -> f32;
    /// Lane `i` of block `j` of the result is lane `j` of block `i`.
    fn transpose(self, rows: [Self::F32; LANES]) -> [Self::F32; LANES];

    /// Asks for the cache line at `at`, into the second cache; the address need not be readable.
    fn prefetch<T>(self, at: *const T);

    /// Reads less than a block, and zeros for the other lanes.
    #[inline(always)]
    fn load_some(self, from: &[f32]) -> Self::F32 {
        let mut block = [0.0; LANES];
        block[..from.len()].copy_from_slice(from);
        self.load(&block)
    }

    /// Writes as many of a block's first lanes as `to` has room for, which is less than a block.
    #[inline(always)]
    fn store_some(self, value: Self::F32, to: &mut [f32]) {
        let mut block = [0.0; LANES];
        self.store(value, &mut block);
        to.copy_from_slice(&block[..to.len()]);
    }

    /// Reads a block, or less than one and zeros.
    #[inline(always)]
    fn load_part(self, from: &[f32]) -> Self::F32 {
        match from.first_chunk() {
            Some(block) => self.load(block),
            None => self.load_some(from),
        }
    }

    /// Writes a block, or as many of its first lanes as `to` has room for.
    #[inline(always)]
    fn store_part(self, value: Self::F32, to: &mut [f32]) {
        match to.first_chunk_mut() {
            Some(block) => self.store(value, block),
            None => self.store_some(value, to),
        }
    }

    /// Reads a block of f16, or less than one and zeros.
    #[inline(always)]
    fn load_f16_part(self, from: &[f16]) -> Self::F32 {
        match from.first_chunk() {
            Some(block) => self.load_f16(block),
            None => {
                let mut block = [f16::ZERO; LANES];
                block[..from.len()].copy_from_slice(from);
                self.load_f16(&block)
            }
        }
    }

    /// Writes a block as f16, or as many of its first lanes as `to` has room for.
    #[inline(always)]
    fn store_f16_part(self, value: Self::F32, to: &mut [f16]) {
        match to.first_chunk_mut() {
            Some(block) => self.store_f16(value, block),
            None => {
                let mut block = [f16::ZERO; LANES];
                self.store_f16(value, &mut block);
                to.copy_from_slice(&block[..to.len()]);
            }
        }
    }
}

/// Methods of [`Simd`] that call the function of the same name in the module, which is compiled with the
/// features the token stands for.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! methods_proven_by_token {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $output:ty)?;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($argument: $type),*) $(-> $output)? {
                // SAFETY: the token, `self`, proves that the CPU has the features.
                unsafe { $name($($argument),*) }
            }
        )*
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use methods_proven_by_token;
