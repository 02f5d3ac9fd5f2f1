//! Products of numbers rounded to thirteen bits, sums of 128 of them in i32, sums of those in f32. An approximation, for who
//! asks for it.
//!
//! A palette has one step, what its entries are multiples of after rounding; of each column of x, 128 numbers that follow each
//! other have one. The order of columns is that in which indices are looked up, see [`place`].

mod dots;
mod panels;
mod x;

use std::marker::PhantomData;

use half::f16;

use super::palettes::{IndexBits, Palettized};
use super::weights::CHUNK;
use crate::isa::Simd;
pub(super) use dots::{Int16Dots, MOST_COLUMNS};
pub(super) use panels::{Int16Panels, group_len, pack_group, width};
pub(super) use x::RoundedX;

/// Columns looked up at a time.
const PAIR: usize = 2 * CHUNK;

/// Largest rounded number.
const LARGEST: i16 = 4095;

const _: () = assert!(PAIR as i64 * LARGEST as i64 * LARGEST as i64 <= i32::MAX as i64);

/// Words of a pair.
const WORDS: usize = PAIR / 32;

/// What numbers are taken for at least when a step is chosen: smaller ones come to nothing anyway.
const SMALLEST: f32 = 1e-30;

/// A palettized matrix and its palettes rounded.
#[derive(Clone, Copy, Debug)]
pub struct Int16Palettized<'a> {
    /// As it was.
    pub exact: Palettized<'a>,
    /// `(groups, entries)`, in steps of their palette.
    pub entries: &'a [i16],
    /// `(groups)`
    pub steps: &'a [f32],
}

impl Int16Palettized<'_> {
    /// # Panics
    /// As [`Palettized::check`], or if the rounded palettes are not as many.
    pub(super) fn check(&self, rows: usize) {
        self.exact.check(rows);
        assert_eq!(self.entries.len(), self.exact.palettes.len(), "all palettes are rounded");
        assert_eq!(
            self.steps.len() * self.exact.bits.entries(),
            self.entries.len(),
            "every palette has a step"
        );
    }
}

/// Palettes rounded to 13 bits.
#[derive(Debug)]
pub(crate) struct RoundedPalettes {
    /// `(groups, entries)`
    pub(crate) entries: Vec<i16>,
    /// `(groups)`
    pub(crate) steps: Vec<f32>,
}

impl RoundedPalettes {
    /// `palettes (groups, entries)` rounded; none if they hold what is not finite.
    pub(crate) fn of(palettes: &[f16], bits: IndexBits) -> Option<Self> {
        let (mut entries, mut steps) = (Vec::with_capacity(palettes.len()), Vec::new());
        for palette in palettes.chunks_exact(bits.entries()) {
            let largest = palette.iter().map(|entry| entry.to_f32().abs()).fold(SMALLEST, f32::max);
            let finite = palette.iter().all(|entry| entry.is_finite());
            let step = finite.then_some(largest / f32::from(LARGEST))?;
            entries.extend(palette.iter().map(|entry| (entry.to_f32() / step).round() as i16));
            steps.push(step);
        }
        Some(Self { entries, steps })
    }
}

/// The lookups of one width.
pub(super) trait WordWidth: Copy + Sync {
    /// Bytes of 128 indices.
    const PAIR_BYTES: usize;
    /// Entries of a palette.
    const ENTRIES: usize;
    /// Whether every fourth column follows the one before it.
    const BY_FOURS: bool = false;
    /// A palette made ready.
    type Table<S: Simd>;

    /// Makes one ready.
    fn table<S: Simd>(simd: S, entries: &[i16]) -> Self::Table<S>;

    /// The entries at 128 indices.
    fn pair<S: Simd>(simd: S, table: &Self::Table<S>, indices: &[u8]) -> Pair<S>;
}

/// Entries of a pair of chunks.
type Pair<S> = [<S as Simd>::Words; WORDS];

/// Where in a pair of chunks the number stands that comes to place `at`.
fn place(by_fours: bool, at: usize) -> usize {
    if by_fours { at % (PAIR / 4) * 4 + at / (PAIR / 4) } else { at }
}

#[derive(Clone, Copy)]
pub(super) struct Words4;

#[derive(Clone, Copy)]
pub(super) struct Words6;

#[derive(Clone, Copy)]
pub(super) struct Words8;

impl WordWidth for Words4 {
    const PAIR_BYTES: usize = PAIR / 2;
    const ENTRIES: usize = 16;
    const BY_FOURS: bool = true;
    type Table<S: Simd> = S::WordTable4;

    #[inline(always)]
    fn table<S: Simd>(simd: S, entries: &[i16]) -> S::WordTable4 {
        simd.word_table4(entries.first_chunk().expect("a whole palette"))
    }

    #[inline(always)]
    fn pair<S: Simd>(simd: S, table: &S::WordTable4, indices: &[u8]) -> Pair<S> {
        simd.words_at4(table, indices.first_chunk().expect("a whole pair"))
    }
}

impl WordWidth for Words6 {
    const PAIR_BYTES: usize = PAIR * 6 / 8;
    const ENTRIES: usize = 64;
    type Table<S: Simd> = S::WordTable6;

    #[inline(always)]
    fn table<S: Simd>(simd: S, entries: &[i16]) -> S::WordTable6 {
        simd.word_table6(entries.first_chunk().expect("a whole palette"))
    }

    #[inline(always)]
    fn pair<S: Simd>(simd: S, table: &S::WordTable6, indices: &[u8]) -> Pair<S> {
        let halves = indices.as_chunks().0;
        let ([a, b], [c, d]) = (simd.words_at6(table, &halves[0]), simd.words_at6(table, &halves[1]));
        [a, b, c, d]
    }
}

impl WordWidth for Words8 {
    const PAIR_BYTES: usize = PAIR;
    const ENTRIES: usize = 256;
    type Table<S: Simd> = S::WordTable8;

    #[inline(always)]
    fn table<S: Simd>(simd: S, entries: &[i16]) -> S::WordTable8 {
        simd.word_table8(entries.first_chunk().expect("a whole palette"))
    }

    #[inline(always)]
    fn pair<S: Simd>(simd: S, table: &S::WordTable8, indices: &[u8]) -> Pair<S> {
        let halves = indices.as_chunks().0;
        let ([a, b], [c, d]) = (simd.words_at8(table, &halves[0]), simd.words_at8(table, &halves[1]));
        [a, b, c, d]
    }
}

/// The rows of such a matrix.
#[derive(Clone, Copy)]
pub(super) struct WordRows<'a, B> {
    matrix: Int16Palettized<'a>,
    cols: usize,
    row_bytes: usize,
    width: PhantomData<B>,
}

impl<'a, B: WordWidth> WordRows<'a, B> {
    /// `matrix` has rows of `cols` weights.
    pub(super) fn new(matrix: Int16Palettized<'a>, cols: usize) -> Self {
        Self { matrix, cols, row_bytes: cols * B::PAIR_BYTES / PAIR, width: PhantomData }
    }

    /// How many columns each row has.
    pub(super) fn cols(self) -> usize {
        self.cols
    }

    /// Bytes from one row to the next.
    pub(super) fn row_bytes(self) -> usize {
        self.row_bytes
    }

    #[inline(always)]
    fn row(self, row: usize) -> &'a [u8] {
        &self.matrix.exact.indices[row * self.row_bytes..][..self.row_bytes]
    }

    #[inline(always)]
    fn group(self, row: usize) -> usize {
        row / self.matrix.exact.group_rows
    }

    #[inline(always)]
    fn table<S: Simd>(self, simd: S, group: usize) -> B::Table<S> {
        B::table(simd, &self.matrix.entries[group * B::ENTRIES..])
    }

    /// What sums along a row are multiplied with.
    #[inline(always)]
    fn scale(self, row: usize) -> f32 {
        let step = self.matrix.steps[self.group(row)];
        self.matrix.exact.scales.map_or(step, |scales| step * scales[row].to_f32())
    }

    /// The columns after the last whole pair; x has zeros where there are no more.
    #[inline(always)]
    fn rest<S: Simd>(self, simd: S, table: &B::Table<S>, row: &[u8]) -> Pair<S> {
        let indices = &row[row.len() / B::PAIR_BYTES * B::PAIR_BYTES..];
        let mut padded = [0; PAIR];
        padded[..indices.len()].copy_from_slice(indices);
        B::pair(simd, table, &padded)
    }
}
