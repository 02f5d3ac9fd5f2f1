//! Weights as indices into palettes, as the linear kernels see them.
//!
//! A row is a stream of 4-, 6- or 8-bit indices that begins with a byte; so many rows in a row share a palette.

use std::fmt;
use std::marker::PhantomData;

use half::f16;

use super::weights::{BLOCKS, CHUNK, Palette, WeightRow, WeightRows};
use crate::isa::{LANES, Simd, join};

/// The width of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexBits {
    /// Sixteen entries a palette.
    Four,
    /// 64 entries.
    Six,
    /// 256 entries.
    Eight,
}

impl IndexBits {
    /// The width as a number.
    pub fn bits(self) -> usize {
        match self {
            IndexBits::Four => 4,
            IndexBits::Six => 6,
            IndexBits::Eight => 8,
        }
    }

    /// How many entries a palette has.
    pub fn entries(self) -> usize {
        1 << self.bits()
    }
}

/// What weights of that width are called, such as `lut4`.
impl fmt::Display for IndexBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lut{}", self.bits())
    }
}

/// A matrix (rows, cols) of indices into palettes.
#[derive(Clone, Copy, Debug)]
pub struct Palettized<'a> {
    /// The width of an index.
    pub bits: IndexBits,
    /// Row after row, in a stream of bits, the first in the lowest; each row is whole bytes.
    pub indices: &'a [u8],
    /// `(groups, entries)`
    pub palettes: &'a [f16],
    /// How many rows share a palette.
    pub group_rows: usize,
    /// Whether all entries are bf16 numbers too (eight significant bits), which some instruction sets look up faster.
    pub short: bool,
    /// `(rows)`: what each row is multiplied with, if anything. Kernels multiply the sums, in f32.
    pub scales: Option<&'a [f16]>,
}

impl Palettized<'_> {
    /// How many weights there are.
    pub(super) fn elements(&self) -> usize {
        self.indices.len() * 8 / self.bits.bits()
    }

    /// # Panics
    /// If `rows` rows are not whole bytes each, or palettes or scales are missing.
    pub(super) fn check(&self, rows: usize) {
        let Self { bits, group_rows, palettes, .. } = *self;
        let whole = self.indices.len().is_multiple_of(rows.max(1))
            && (self.indices.len() * 8).is_multiple_of(bits.bits());
        assert!(whole, "{bits}: rows of indices are whole bytes");
        assert!(
            palettes.len() >= rows.div_ceil(group_rows) * bits.entries(),
            "{bits}: every row has a palette"
        );
        assert!(self.scales.is_none_or(|scales| scales.len() == rows), "{bits}: every row has a scale");
    }
}

/// The lookups of one width.
pub(super) trait Width: Copy + Sync {
    /// Bytes of 64 indices.
    const CHUNK_BYTES: usize;
    /// Entries of a palette.
    const ENTRIES: usize;
    /// A palette made ready.
    type Palette<S: Simd>;

    /// Makes one ready.
    fn palette<S: Simd>(simd: S, entries: &[f16]) -> Self::Palette<S>;

    /// The entries at 64 indices.
    fn look_up<S: Simd>(simd: S, palette: &Self::Palette<S>, indices: &[u8]) -> [S::F32; BLOCKS];

    /// [`WeightRow::PAIRED`]
    const PAIRED: bool = false;

    /// The entries at 128 indices, in the order of [`Simd::arrange`] if `PAIRED`.
    #[inline(always)]
    fn look_up_pair<S: Simd>(simd: S, palette: &Self::Palette<S>, indices: &[u8]) -> [S::F32; 2 * BLOCKS] {
        let (first, second) = indices.split_at(Self::CHUNK_BYTES);
        join(Self::look_up(simd, palette, first), Self::look_up(simd, palette, second))
    }
}

macro_rules! widths {
    ($($name:ident: $bits:literal, $palette:ident, $make:ident, $look_up:ident $(, in pairs $look_up_pair:ident)?;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub(super) struct $name;

            impl Width for $name {
                const CHUNK_BYTES: usize = CHUNK * $bits / 8;
                const ENTRIES: usize = 1 << $bits;
                type Palette<S: Simd> = S::$palette;

                #[inline(always)]
                fn palette<S: Simd>(simd: S, entries: &[f16]) -> S::$palette {
                    simd.$make(entries.first_chunk().expect("a whole palette"))
                }

                #[inline(always)]
                fn look_up<S: Simd>(simd: S, palette: &S::$palette, indices: &[u8]) -> [S::F32; BLOCKS] {
                    simd.$look_up(palette, indices.first_chunk().expect("a whole chunk"))
                }

                $(
                    const PAIRED: bool = true;

                    #[inline(always)]
                    fn look_up_pair<S: Simd>(
                        simd: S,
                        palette: &S::$palette,
                        indices: &[u8],
                    ) -> [S::F32; 2 * BLOCKS] {
                        simd.$look_up_pair(palette, indices.first_chunk().expect("a whole pair"))
                    }
                )?
            }
        )*
    };
}

widths! {
    Lut4: 4, Palette4, palette4, look_up4;
    Lut6: 6, Palette6, palette6, look_up6;
    Lut8: 8, Palette8, palette8, look_up8;
    ShortLut4: 4, Palette4, palette4, look_up4, in pairs look_up4_short;
    ShortLut6: 6, Palette6, palette6_short, look_up6_short;
    ShortLut8: 8, Palette8, palette8_short, look_up8_short;
}

/// A matrix of indices of one width.
#[derive(Clone, Copy)]
pub(super) struct PaletteRows<'a, B> {
    matrix: Palettized<'a>,
    cols: usize,
    row_bytes: usize,
    width: PhantomData<B>,
}

impl<'a, B: Width> PaletteRows<'a, B> {
    /// `matrix` has rows of `cols` weights.
    pub(super) fn new(matrix: Palettized<'a>, cols: usize) -> Self {
        Self { matrix, cols, row_bytes: cols * B::CHUNK_BYTES / CHUNK, width: PhantomData }
    }
}

impl<'a, B: Width> WeightRows for PaletteRows<'a, B> {
    type Row = PaletteRow<'a, B>;

    #[inline(always)]
    fn cols(self) -> usize {
        self.cols
    }

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.row_bytes
    }

    #[inline(always)]
    fn row(self, row: usize) -> PaletteRow<'a, B> {
        let indices = &self.matrix.indices[row * self.row_bytes..][..self.row_bytes];
        PaletteRow { indices, rest: self.cols % CHUNK, width: PhantomData }
    }

    #[inline(always)]
    fn group(self, row: usize) -> usize {
        row / self.matrix.group_rows
    }

    #[inline(always)]
    fn palette<S: Simd>(self, simd: S, group: usize) -> Palette<Self, S> {
        B::palette(simd, &self.matrix.palettes[group * B::ENTRIES..])
    }

    #[inline(always)]
    fn scale(self, row: usize) -> f32 {
        self.matrix.scales.map_or(1.0, |scales| scales[row].to_f32())
    }
}

/// A row of indices.
#[derive(Clone, Copy)]
pub(super) struct PaletteRow<'a, B> {
    indices: &'a [u8],
    /// Columns after the last whole chunk.
    rest: usize,
    width: PhantomData<B>,
}

impl<B: Width> WeightRow for PaletteRow<'_, B> {
    type Palette<S: Simd> = B::Palette<S>;

    const CHUNK_BYTES: usize = B::CHUNK_BYTES;
    const PAIRED: bool = B::PAIRED;

    #[inline(always)]
    fn decode<S: Simd>(self, simd: S, palette: &B::Palette<S>, chunk: usize) -> [S::F32; BLOCKS] {
        B::look_up(simd, palette, &self.indices[chunk * B::CHUNK_BYTES..])
    }

    #[inline(always)]
    fn decode_pair<S: Simd>(self, simd: S, palette: &B::Palette<S>, pair: usize) -> [S::F32; 2 * BLOCKS] {
        B::look_up_pair(simd, palette, &self.indices[2 * pair * B::CHUNK_BYTES..])
    }

    /// A palette may hold infinities, so what stands for no column is made zero.
    #[inline(always)]
    fn decode_rest<S: Simd>(self, simd: S, palette: &B::Palette<S>) -> [S::F32; BLOCKS] {
        let mut indices = [0; CHUNK];
        let rest = &self.indices[self.indices.len() / B::CHUNK_BYTES * B::CHUNK_BYTES..];
        indices[..rest.len()].copy_from_slice(rest);
        let mut blocks = B::look_up(simd, palette, &indices);
        for (i, block) in blocks.iter_mut().enumerate() {
            let mut lanes = [0.0; LANES];
            simd.store(*block, &mut lanes);
            lanes[self.rest.saturating_sub(i * LANES).min(LANES)..].fill(0.0);
            *block = simd.load(&lanes);
        }
        blocks
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self.indices.as_ptr()
    }
}
