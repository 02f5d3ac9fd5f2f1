//! How weights are stored, as the linear kernels see it: rows that decode to f32 sixteen columns at a time.

use half::f16;

use crate::isa::{LANES, Simd};

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
}

/// A row of weights in blocks of sixteen columns, the last maybe shorter.
pub(super) trait WeightRow: Copy {
    /// Bytes from one block to the next.
    const BLOCK_BYTES: usize;

    /// The row without anything past its first `blocks` whole blocks; the compiler then knows that smaller
    /// indices are inside.
    fn whole_blocks(self, blocks: usize) -> Self;

    /// Whole block `block` in f32, exactly.
    fn decode<S: Simd>(self, simd: S, block: usize) -> S::F32;

    /// The columns after the last whole block, then zeros.
    fn decode_tail<S: Simd>(self, simd: S) -> S::F32;

    /// Asks for the cache line that lies `bytes` after the beginning of `block`, in this row or past its end.
    fn prefetch<S: Simd>(self, simd: S, block: usize, bytes: usize);
}

/// A row-major matrix of f16.
#[derive(Clone, Copy)]
pub(super) struct F16Rows<'a> {
    weights: &'a [f16],
    cols: usize,
}

impl<'a> F16Rows<'a> {
    pub(super) fn new(weights: &'a [f16], cols: usize) -> Self {
        Self { weights, cols }
    }
}

impl<'a> WeightRows for F16Rows<'a> {
    type Row = F16Row<'a>;

    #[inline(always)]
    fn cols(self) -> usize {
        self.cols
    }

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.cols * size_of::<f16>()
    }

    #[inline(always)]
    fn row(self, row: usize) -> F16Row<'a> {
        let (blocks, tail) = self.weights[row * self.cols..][..self.cols].as_chunks();
        F16Row { blocks, tail }
    }
}

/// A row of f16.
#[derive(Clone, Copy)]
pub(super) struct F16Row<'a> {
    blocks: &'a [[f16; LANES]],
    tail: &'a [f16],
}

impl WeightRow for F16Row<'_> {
    const BLOCK_BYTES: usize = size_of::<[f16; LANES]>();

    #[inline(always)]
    fn whole_blocks(self, blocks: usize) -> Self {
        Self { blocks: &self.blocks[..blocks], tail: self.tail }
    }

    #[inline(always)]
    fn decode<S: Simd>(self, simd: S, block: usize) -> S::F32 {
        simd.load_f16(&self.blocks[block])
    }

    #[inline(always)]
    fn decode_tail<S: Simd>(self, simd: S) -> S::F32 {
        simd.load_f16_part(self.tail)
    }

    #[inline(always)]
    fn prefetch<S: Simd>(self, simd: S, block: usize, bytes: usize) {
        simd.prefetch(self.blocks.as_ptr().wrapping_add(block).wrapping_byte_add(bytes));
    }
}

/// A row-major matrix of f32: what a pass has computed itself and caches do not hold yet.
#[derive(Clone, Copy)]
pub(super) struct F32Rows<'a> {
    elements: &'a [f32],
    cols: usize,
}

impl<'a> F32Rows<'a> {
    pub(super) fn new(elements: &'a [f32], cols: usize) -> Self {
        Self { elements, cols }
    }
}

impl<'a> WeightRows for F32Rows<'a> {
    type Row = F32Row<'a>;

    #[inline(always)]
    fn cols(self) -> usize {
        self.cols
    }

    #[inline(always)]
    fn row_bytes(self) -> usize {
        self.cols * size_of::<f32>()
    }

    #[inline(always)]
    fn row(self, row: usize) -> F32Row<'a> {
        let (blocks, tail) = self.elements[row * self.cols..][..self.cols].as_chunks();
        F32Row { blocks, tail }
    }
}

/// A row of f32.
#[derive(Clone, Copy)]
pub(super) struct F32Row<'a> {
    blocks: &'a [[f32; LANES]],
    tail: &'a [f32],
}

impl WeightRow for F32Row<'_> {
    const BLOCK_BYTES: usize = size_of::<[f32; LANES]>();

    #[inline(always)]
    fn whole_blocks(self, blocks: usize) -> Self {
        Self { blocks: &self.blocks[..blocks], tail: self.tail }
    }

    #[inline(always)]
    fn decode<S: Simd>(self, simd: S, block: usize) -> S::F32 {
        simd.load(&self.blocks[block])
    }

    #[inline(always)]
    fn decode_tail<S: Simd>(self, simd: S) -> S::F32 {
        simd.load_part(self.tail)
    }

    #[inline(always)]
    fn prefetch<S: Simd>(self, simd: S, block: usize, bytes: usize) {
        simd.prefetch(self.blocks.as_ptr().wrapping_add(block).wrapping_byte_add(bytes));
    }
}
