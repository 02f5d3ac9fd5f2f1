//! A stored tensor, read by rows: nothing is decoded before it is asked for, and only into the caller's buffer.
//!
//! Elements are little-endian and may lie at any alignment, so decoding goes through blocks that fit the first-level
//! cache.

use std::ops::Range;
use std::path::Path;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::mapped::MappedFile;

/// How a tensor's elements are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
}

impl Dtype {
    /// Width of an element.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::Bf16 | Dtype::F16 => 2,
            Dtype::F32 => 4,
        }
    }
}

/// The largest finite fp16 magnitude.
pub const F16_MAX: f32 = 65504.0;

/// Elements decoded at a time: 16 KB of f32.
const BLOCK: usize = 4096;

/// A view of one stored tensor; copying it copies no element.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a Path,
    pub(super) dtype: Dtype,
    pub(super) shape: &'a [usize],
    pub(super) file: &'a MappedFile,
    /// Where in the file the elements begin.
    pub(super) start: usize,
}

/// What [`Tensor::range_faults`] counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RangeFaults {
    /// Elements that are NaN or infinite.
    pub non_finite: usize,
    /// Finite elements whose magnitude, after scaling, exceeds [`F16_MAX`].
    pub too_large: usize,
}

impl<'a> Tensor<'a> {
    /// Name in the checkpoint.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// File that holds the tensor.
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Stored element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Sizes of the dimensions, outermost first.
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// Size of the outermost dimension.
    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    /// Elements in a row: the product of all dimensions but the outermost.
    pub fn row_len(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Elements in all.
    pub fn len(&self) -> usize {
        self.rows() * self.row_len()
    }

    /// True for a tensor without elements; a validated checkpoint has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stored bytes of the given rows, little-endian.
    ///
    /// # Panics
    /// If `rows` reaches beyond the tensor.
    pub fn row_bytes(&self, rows: Range<usize>) -> &'a [u8] {
        &self.file[self.byte_range(rows)]
    }

    /// Asks the system to read the given rows ahead of their use.
    ///
    /// # Panics
    /// If `rows` reaches beyond the tensor.
    pub fn prefetch(&self, rows: Range<usize>) {
        self.file.prefetch(self.byte_range(rows));
    }

    /// Decodes rows into `out`: `(rows, row_len)` f32, row-major. Exact for every stored type.
    ///
    /// # Panics
    /// If `rows` reaches beyond the tensor or `out` is not `rows.len() * row_len` long.
    pub fn read_rows_f32(&self, rows: Range<usize>, out: &mut [f32]) {
        assert_eq!(out.len(), rows.len() * self.row_len(), "output of rows {rows:?} of `{}`", self.name);
        decode(self.dtype, self.row_bytes(rows), out);
    }

    /// Decodes rows into `out`: `(rows, row_len)` f16, row-major. Every element is multiplied by `scale`, a power of
    /// two, and rounded once, to the nearest fp16, ties to even. f16 elements at scale 1 are copied.
    ///
    /// # Panics
    /// If `rows` reaches beyond the tensor or `out` is not `rows.len() * row_len` long.
    pub fn read_rows_f16(&self, rows: Range<usize>, scale: f32, out: &mut [f16]) {
        assert_eq!(out.len(), rows.len() * self.row_len(), "output of rows {rows:?} of `{}`", self.name);
        round(self.dtype, self.row_bytes(rows), scale, out);
    }

    /// The same for a part of every row: `out` is `(rows, columns)`.
    ///
    /// # Panics
    /// If `rows` or `columns` reach beyond the tensor or `out` is not `rows.len() * columns.len()` long.
    pub fn read_columns_f16(&self, rows: Range<usize>, columns: Range<usize>, scale: f32, out: &mut [f16]) {
        assert_eq!(out.len(), rows.len() * columns.len(), "output of rows {rows:?} of `{}`", self.name);
        if columns == (0..self.row_len()) {
            return self.read_rows_f16(rows, scale, out);
        }
        let bytes = columns.start * self.dtype.bytes()..columns.end * self.dtype.bytes();
        for (row, out) in rows.zip(out.chunks_mut(columns.len().max(1))) {
            round(self.dtype, &self.row_bytes(row..row + 1)[bytes.clone()], scale, out);
        }
    }

    /// All elements as f32, row-major.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut elements = vec![0.0; self.len()];
        self.read_rows_f32(0..self.rows(), &mut elements);
        elements
    }

    /// Largest magnitude of the given rows; infinite if any element is infinite or NaN.
    ///
    /// # Panics
    /// If `rows` reaches beyond the tensor.
    pub fn max_abs(&self, rows: Range<usize>) -> f32 {
        let bytes = self.row_bytes(rows);
        // The bits of a float without its sign grow with its magnitude, so integers find the maximum without decoding.
        let largest = match self.dtype {
            Dtype::Bf16 => f32::from_bits(u32::from(largest_half(bytes)) << 16),
            Dtype::F16 => f16::from_bits(largest_half(bytes)).to_f32(),
            Dtype::F32 => f32::from_bits(largest_single(bytes)),
        };
        if largest.is_nan() { f32::INFINITY } else { largest }
    }

    /// Counts the elements of the given rows that fp16 cannot hold once multiplied by `scale`.
    ///
    /// # Panics
    /// If `rows` reaches beyond the tensor.
    pub fn range_faults(&self, rows: Range<usize>, scale: f32) -> RangeFaults {
        if self.max_abs(rows.clone()) * scale <= F16_MAX {
            return RangeFaults::default();
        }
        let mut faults = RangeFaults::default();
        let mut block = [0.0; BLOCK];
        for bytes in self.row_bytes(rows).chunks(BLOCK * self.dtype.bytes()) {
            let block = &mut block[..bytes.len() / self.dtype.bytes()];
            decode(self.dtype, bytes, block);
            faults.non_finite += block.iter().filter(|element| !element.is_finite()).count();
            faults.too_large +=
                block.iter().filter(|element| element.is_finite() && element.abs() * scale > F16_MAX).count();
        }
        faults
    }

    fn byte_range(&self, rows: Range<usize>) -> Range<usize> {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows(),
            "rows {rows:?} of `{}`, which has {}",
            self.name,
            self.rows()
        );
        let row_bytes = self.row_len() * self.dtype.bytes();
        self.start + rows.start * row_bytes..self.start + rows.end * row_bytes
    }
}

impl std::fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.name, self.dtype, self.shape)
    }
}

/// Little-endian elements to f32.
fn decode(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        Dtype::F32 => {
            for (out, element) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                *out = f32::from_le_bytes([element[0], element[1], element[2], element[3]]);
            }
        }
        Dtype::Bf16 => {
            for (out, element) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *out = f32::from_bits(u32::from(u16::from_le_bytes([element[0], element[1]])) << 16);
            }
        }
        Dtype::F16 => {
            let mut halves = [f16::ZERO; BLOCK];
            for (out, bytes) in out.chunks_mut(BLOCK).zip(bytes.chunks(2 * BLOCK)) {
                let halves = &mut halves[..out.len()];
                for (half, element) in halves.iter_mut().zip(bytes.chunks_exact(2)) {
                    *half = f16::from_le_bytes([element[0], element[1]]);
                }
                halves.convert_to_f32_slice(out);
            }
        }
    }
}

/// Little-endian elements, times `scale`, to the nearest f16.
fn round(dtype: Dtype, bytes: &[u8], scale: f32, out: &mut [f16]) {
    if dtype == Dtype::F16 && scale == 1.0 {
        for (out, element) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            *out = f16::from_le_bytes([element[0], element[1]]);
        }
        return;
    }
    let mut block = [0.0; BLOCK];
    for (out, bytes) in out.chunks_mut(BLOCK).zip(bytes.chunks(BLOCK * dtype.bytes())) {
        let block = &mut block[..out.len()];
        decode(dtype, bytes, block);
        block.iter_mut().for_each(|element| *element *= scale);
        out.convert_from_f32_slice(block);
    }
}

// Signed integers, because every x86-64 has their maximum as an instruction.

fn largest_half(bytes: &[u8]) -> u16 {
    let magnitude = |element: &[u8]| i16::from_le_bytes([element[0], element[1]]) & i16::MAX;
    bytes.chunks_exact(2).map(magnitude).max().unwrap_or(0).cast_unsigned()
}

fn largest_single(bytes: &[u8]) -> u32 {
    let magnitude =
        |element: &[u8]| i32::from_le_bytes([element[0], element[1], element[2], element[3]]) & i32::MAX;
    bytes.chunks_exact(4).map(magnitude).max().unwrap_or(0).cast_unsigned()
}
