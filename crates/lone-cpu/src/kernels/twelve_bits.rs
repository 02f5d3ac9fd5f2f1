//! Weights as bf16 numbers in twelve bits each: their low bytes, and the places of their high bytes among sixteen.
//!
//! Large palettes are brought to this form where it takes longer to look entries up than to read more bytes. It holds the same
//! numbers: the high bytes of bf16 are a sign and most of an exponent, of which a palette has few.

use half::f16;

use super::palettes::{IndexBits, Palettized};
use super::weights::{BLOCKS, CHUNK, Palette, WeightRow, WeightRows};
use crate::isa::{HighBytes, Simd, TWELVE_BITS_ORDER, TwelveBitsChunk};

/// A matrix (rows, cols) of bf16 numbers, cols a multiple of 64.
#[derive(Clone, Copy, Debug)]
pub struct TwelveBits<'a> {
    /// `(rows, cols / 64)`
    pub chunks: &'a [TwelveBitsChunk],
    /// `(groups)`
    pub high_bytes: &'a [HighBytes],
    /// How many rows share high bytes.
    pub group_rows: usize,
    /// `(rows)`: what each row is multiplied with, if anything. Kernels multiply the sums, in f32.
    pub scales: Option<&'a [f16]>,
}

impl TwelveBits<'_> {
    /// How many weights there are.
    pub(super) fn elements(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// # Panics
    /// If high bytes or scales of some of `rows` rows are missing.
    pub(super) fn check(&self, rows: usize) {
        assert!(self.chunks.len().is_multiple_of(rows.max(1)), "rows are whole chunks");
        assert!(self.high_bytes.len() * self.group_rows >= rows, "every row has high bytes");
        assert!(self.scales.is_none_or(|scales| scales.len() == rows), "every row has a scale");
    }
}

impl Palettized<'_> {
    /// The high bytes of each palette, if rows of `cols` weights can be brought to twelve bits: all entries are bf16 numbers, a
    /// palette has at most sixteen high bytes, and rows are whole chunks.
    pub(crate) fn high_bytes(&self, cols: usize) -> Option<Vec<HighBytes>> {
        let fits = self.short && cols > 0 && cols.is_multiple_of(CHUNK);
        let palettes = self.palettes.chunks_exact(self.bits.entries());
        fits.then(|| palettes.map(high_bytes).collect())?
    }

    /// The rows from `first_row` on as chunks, as many as there is room for.
    ///
    /// # Panics
    /// If `high_bytes` are not those of [`Palettized::high_bytes`].
    pub(crate) fn write_twelve_bits(
        &self,
        high_bytes: &[HighBytes],
        cols: usize,
        first_row: usize,
        chunks: &mut [TwelveBitsChunk],
    ) {
        let chunk_bytes = CHUNK * self.bits.bits() / 8;
        let rows = self.indices.chunks_exact(cols / CHUNK * chunk_bytes).enumerate().skip(first_row);
        let (mut codes_group, mut codes) = (None, [[0; 2]; 256]);
        for ((row, indices), chunks) in rows.zip(chunks.chunks_exact_mut(cols / CHUNK)) {
            let group = row / self.group_rows;
            if codes_group != Some(group) {
                let palette = &self.palettes[group * self.bits.entries()..][..self.bits.entries()];
                (codes_group, codes) = (Some(group), codes_of(palette, &high_bytes[group]));
            }
            for (indices, chunk) in indices.chunks_exact(chunk_bytes).zip(chunks) {
                *chunk = encoded(self.bits, indices, &codes);
            }
        }
    }
}

/// The low byte and the high byte of the bf16 number that `entry` is.
fn bytes(entry: f16) -> [u8; 2] {
    let [_, _, low, high] = entry.to_f32().to_le_bytes();
    [low, high]
}

/// All high bytes of a palette, if they are at most sixteen.
fn high_bytes(palette: &[f16]) -> Option<HighBytes> {
    let (mut found, mut count) = (HighBytes::default(), 0);
    for [_, high] in palette.iter().copied().map(bytes) {
        if !found[..count].contains(&high) {
            *found.get_mut(count)? = high;
            count += 1;
        }
    }
    Some(found)
}

/// For each entry its low byte, and the place of its high byte.
fn codes_of(palette: &[f16], high_bytes: &HighBytes) -> [[u8; 2]; 256] {
    let mut codes = [[0; 2]; 256];
    for (code, &entry) in codes.iter_mut().zip(palette) {
        let [low, high] = bytes(entry);
        let place = high_bytes.iter().position(|&byte| byte == high);
        *code = [low, place.expect("all high bytes of the palette are there") as u8];
    }
    codes
}

/// The chunk of 64 indices.
fn encoded(bits: IndexBits, indices: &[u8], codes: &[[u8; 2]; 256]) -> TwelveBitsChunk {
    let mut chunk = [0; size_of::<TwelveBitsChunk>()];
    let (low_bytes, places) = chunk.split_at_mut(CHUNK);
    let indices = spread(bits, indices);
    for (half, (indices, low_bytes)) in indices.chunks(32).zip(low_bytes.chunks_mut(32)).enumerate() {
        for (&index, at) in indices.iter().zip(TWELVE_BITS_ORDER) {
            let [low, place] = codes[usize::from(index)];
            low_bytes[usize::from(at)] = low;
            places[usize::from(at)] |= place << (4 * half);
        }
    }
    chunk
}

/// 64 indices, a byte each.
fn spread(bits: IndexBits, indices: &[u8]) -> [u8; CHUNK] {
    let mut bytes = [0; CHUNK];
    let eights = indices.chunks_exact(bits.bits()).zip(bytes.as_chunks_mut::<8>().0);
    for (packed, bytes) in eights {
        let mut word = [0; 8];
        word[..packed.len()].copy_from_slice(packed);
        let word = u64::from_le_bytes(word);
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = (word >> (i * bits.bits())) as u8 & (bits.entries() - 1) as u8;
        }
    }
    bytes
}

/// The rows of such a matrix.
#[derive(Clone, Copy)]
pub(super) struct TwelveBitsRows<'a> {
    matrix: TwelveBits<'a>,
    row_chunks: usize,
}

impl<'a> TwelveBitsRows<'a> {
    /// `matrix` has rows of `cols` weights.
    pub(super) fn new(matrix: TwelveBits<'a>, cols: usize) -> Self {
        Self { matrix, row_chunks: cols / CHUNK }
    }
}

impl<'a> WeightRows for TwelveBitsRows<'a> {
    type Row = TwelveBitsRow<'a>;

    #[inline(always)]
    fn cols(self) -> usize {
        self.row_chunks * CHUNK
    }

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.row_chunks * size_of::<TwelveBitsChunk>()
    }

    #[inline(always)]
    fn row(self, row: usize) -> TwelveBitsRow<'a> {
        TwelveBitsRow(&self.matrix.chunks[row * self.row_chunks..][..self.row_chunks])
    }

    #[inline(always)]
    fn group(self, row: usize) -> usize {
        row / self.matrix.group_rows
    }

    #[inline(always)]
    fn palette<S: Simd>(self, _simd: S, group: usize) -> Palette<Self, S> {
        self.matrix.high_bytes[group]
    }

    #[inline(always)]
    fn scale(self, row: usize) -> f32 {
        self.matrix.scales.map_or(1.0, |scales| scales[row].to_f32())
    }
}

/// A row.
#[derive(Clone, Copy)]
pub(super) struct TwelveBitsRow<'a>(&'a [TwelveBitsChunk]);

impl WeightRow for TwelveBitsRow<'_> {
    type Palette<S: Simd> = HighBytes;

    const CHUNK_BYTES: usize = size_of::<TwelveBitsChunk>();

    #[inline(always)]
    fn decode<S: Simd>(self, simd: S, palette: &HighBytes, chunk: usize) -> [S::F32; BLOCKS] {
        simd.twelve_bits(palette, &self.0[chunk])
    }

    fn decode_rest<S: Simd>(self, _simd: S, _palette: &HighBytes) -> [S::F32; BLOCKS] {
        unreachable!("rows are whole chunks")
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}
