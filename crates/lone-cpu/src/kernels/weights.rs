//! How weights are stored, as the linear kernels see it: rows that decode to f32, 64 columns at a time.

use std::array::from_fn;

use half::f16;

use crate::isa::{LANES, Simd, join};

/// Columns decoded at a time.
pub(super) const CHUNK: usize = 64;

/// Blocks of a chunk.
pub(super) const BLOCKS: usize = CHUNK / LANES;

/// A matrix of weights, rows × cols, that gives out its rows.
pub(super) trait WeightRows: Copy + Sync {
    /// One row.
    type Row: WeightRow;

    /// How many columns each row has.
    fn cols(self) -> usize;

    /// Bytes from one row to the next.
    fn row_bytes(self) -> usize;

    /// Row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    fn row(self, row: usize) -> Self::Row;

    /// Which palette row `row` is decoded with.
    fn group(self, row: usize) -> usize;

    /// Palette `group`.
    fn palette<S: Simd>(self, simd: S, group: usize) -> Palette<Self, S>;

    /// What sums along row `row` are multiplied with.
    fn scale(self, row: usize) -> f32;
}

/// The palettes of a matrix of type `W`.
pub(super) type Palette<W, S> = <<W as WeightRows>::Row as WeightRow>::Palette<S>;

/// A row of weights in chunks of 64 columns, the last maybe shorter.
pub(super) trait WeightRow: Copy {
    /// What decoding needs besides the row.
    type Palette<S: Simd>;

    /// Bytes from one chunk to the next.
    const CHUNK_BYTES: usize;
    /// Whether [`WeightRow::decode_pair`] is faster than `decode`, and has the order of [`Simd::arrange`].
    const PAIRED: bool = false;

    /// Whole chunk `chunk` in f32, exactly.
    fn decode<S: Simd>(self, simd: S, palette: &Self::Palette<S>, chunk: usize) -> [S::F32; BLOCKS];

    /// Whole chunks `2 * pair` and `2 * pair + 1`.
    #[inline(always)]
    fn decode_pair<S: Simd>(self, simd: S, palette: &Self::Palette<S>, pair: usize) -> [S::F32; 2 * BLOCKS] {
        join(self.decode(simd, palette, 2 * pair), self.decode(simd, palette, 2 * pair + 1))
    }

    /// The columns after the last whole chunk, then zeros.
    fn decode_rest<S: Simd>(self, simd: S, palette: &Self::Palette<S>) -> [S::F32; BLOCKS];

    /// Where the row begins in memory.
    fn start(self) -> *const u8;

    /// Asks for the cache line that lies `bytes` after the beginning of `chunk`, in this row or past its end.
    #[inline(always)]
    fn prefetch<S: Simd>(self, simd: S, chunk: usize, bytes: usize) {
        simd.prefetch(self.start().wrapping_add(chunk * Self::CHUNK_BYTES + bytes));
    }
}

/// A number as it is.
pub(super) trait Number: Copy + Sync {
    /// A block of them in f32, exactly.
    fn load<S: Simd>(simd: S, from: &[Self; LANES]) -> S::F32;

    /// Less than a block, then zeros.
    fn load_part<S: Simd>(simd: S, from: &[Self]) -> S::F32;
}

impl Number for f16 {
    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[f16; LANES]) -> S::F32 {
        simd.load_f16(from)
    }

    #[inline(always)]
    fn load_part<S: Simd>(simd: S, from: &[f16]) -> S::F32 {
        simd.load_f16_part(from)
    }
}

impl Number for f32 {
    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[f32; LANES]) -> S::F32 {
        simd.load(from)
    }

    #[inline(always)]
    fn load_part<S: Simd>(simd: S, from: &[f32]) -> S::F32 {
        simd.load_part(from)
    }
}

/// A row-major matrix of f16 or f32.
#[derive(Clone, Copy)]
pub(super) struct NumberRows<'a, T> {
    numbers: &'a [T],
    cols: usize,
}

/// Weights and caches.
pub(super) type F16Rows<'a> = NumberRows<'a, f16>;

/// What a pass has computed itself and caches do not hold yet.
pub(super) type F32Rows<'a> = NumberRows<'a, f32>;

impl<'a, T> NumberRows<'a, T> {
    pub(super) fn new(numbers: &'a [T], cols: usize) -> Self {
        Self { numbers, cols }
    }
}

impl<'a, T: Number> WeightRows for NumberRows<'a, T> {
    type Row = NumberRow<'a, T>;

    #[inline(always)]
    fn cols(self) -> usize {
        self.cols
    }

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.cols * size_of::<T>()
    }

    #[inline(always)]
    fn row(self, row: usize) -> NumberRow<'a, T> {
        let (blocks, tail) = self.numbers[row * self.cols..][..self.cols].as_chunks();
        NumberRow { blocks, tail }
    }

    #[inline(always)]
    fn group(self, _row: usize) -> usize {
        0
    }

    #[inline(always)]
    fn palette<S: Simd>(self, _simd: S, _group: usize) {}

    #[inline(always)]
    fn scale(self, _row: usize) -> f32 {
        1.0
    }
}

/// A row of numbers, which can be had sixteen at a time too.
#[derive(Clone, Copy)]
pub(super) struct NumberRow<'a, T> {
    blocks: &'a [[T; LANES]],
    tail: &'a [T],
}

impl<T: Number> NumberRow<'_, T> {
    /// Bytes from one block to the next.
    pub(super) const BLOCK_BYTES: usize = LANES * size_of::<T>();

    /// The numbers of block `block`, zeros where there are no more.
    #[inline(always)]
    pub(super) fn block<S: Simd>(self, simd: S, block: usize) -> S::F32 {
        match self.blocks.get(block) {
            Some(block) => T::load(simd, block),
            None if block == self.blocks.len() => T::load_part(simd, self.tail),
            None => simd.splat(0.0),
        }
    }

    /// Asks for the cache line that lies `bytes` after the beginning of `block`, in this row or past its end.
    #[inline(always)]
    pub(super) fn prefetch_block<S: Simd>(self, simd: S, block: usize, bytes: usize) {
        simd.prefetch(self.blocks.as_ptr().wrapping_add(block).wrapping_byte_add(bytes));
    }
}

impl<T: Number> WeightRow for NumberRow<'_, T> {
    type Palette<S: Simd> = ();

    const CHUNK_BYTES: usize = BLOCKS * Self::BLOCK_BYTES;

    #[inline(always)]
    fn decode<S: Simd>(self, simd: S, (): &(), chunk: usize) -> [S::F32; BLOCKS] {
        let blocks: &[_; BLOCKS] = self.blocks[BLOCKS * chunk..].first_chunk().expect("the chunk is whole");
        from_fn(|i| T::load(simd, &blocks[i]))
    }

    #[inline(always)]
    fn decode_rest<S: Simd>(self, simd: S, (): &()) -> [S::F32; BLOCKS] {
        let first = self.blocks.len() / BLOCKS * BLOCKS;
        let mut blocks = [simd.splat(0.0); BLOCKS];
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = self.block(simd, first + i);
        }
        blocks
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self.blocks.as_ptr().cast()
    }
}
