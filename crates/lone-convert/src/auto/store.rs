//! Palettes that were made already.

use std::collections::BTreeMap;
use std::ops::Range;

use lone_lfm::{Substitute, Tensor};

use crate::palette::{Matrix, PaletteFormat, Palettized, WeightPrecision};

/// Palettes by tensor and width of index, in slices of rows.
#[derive(Debug, Default)]
pub(crate) struct PaletteStore {
    slices: BTreeMap<String, Vec<Slice>>,
}

/// Rows of a tensor.
#[derive(Debug)]
struct Slice {
    rows: Range<usize>,
    scale: f32,
    format: PaletteFormat,
    /// Each with its columns.
    parts: Vec<(Range<usize>, Palettized)>,
}

impl PaletteStore {
    /// Keeps the palettes of a matrix, and gives their size in bytes.
    pub(super) fn insert(&mut self, matrix: &Matrix<'_>, parts: Vec<Palettized>) -> u64 {
        let bytes = parts.iter().map(Palettized::bytes).sum();
        self.slices.entry(matrix.tensor.name().to_owned()).or_default().push(Slice {
            rows: matrix.rows.clone(),
            scale: matrix.scale,
            format: matrix.format,
            parts: matrix.parts.iter().cloned().zip(parts).collect(),
        });
        bytes
    }

    /// The parts that were made of this matrix.
    pub(crate) fn parts(&self, matrix: &Matrix<'_>) -> Option<Vec<Palettized>> {
        let slices = self.slices.get(matrix.tensor.name())?;
        let is_it = |slice: &&Slice| slice.rows == matrix.rows && slice.format == matrix.format;
        let slice = slices.iter().find(is_it)?;
        Some(slice.parts.iter().map(|(_, part)| part.clone()).collect())
    }

    /// Of the slices of that width the one with that row.
    fn slice(&self, tensor: &str, precision: WeightPrecision, row: usize) -> Option<&Slice> {
        let is_it = |slice: &&Slice| {
            Some(slice.format.indices) == precision.index_dtype() && slice.rows.contains(&row)
        };
        self.slices.get(tensor)?.iter().find(is_it)
    }
}

impl Slice {
    /// A row of the tensor to `out`, (C).
    fn read_row(&self, row: usize, out: &mut [f32]) {
        let row = row - self.rows.start;
        for (columns, part) in &self.parts {
            let start = row * columns.len();
            for (at, out) in (start..).zip(&mut out[columns.clone()]) {
                let value = part.value(self.format, row / self.format.group_rows, at);
                *out = value.to_f32() / self.scale;
            }
        }
    }
}

/// A width for some tensors, which the rest of the checkpoint is run with.
#[derive(Debug)]
pub(super) struct Chosen<'s> {
    pub(super) store: &'s PaletteStore,
    pub(super) precisions: &'s BTreeMap<String, WeightPrecision>,
}

impl Substitute for Chosen<'_> {
    fn read_rows_f32(&self, matrix: &Tensor<'_>, rows: Range<usize>, out: &mut [f32]) -> bool {
        let Some(&precision) = self.precisions.get(matrix.name()) else { return false };
        for (row, out) in rows.zip(out.chunks_exact_mut(matrix.row_len())) {
            let slice = self.store.slice(matrix.name(), precision, row);
            slice.expect("slices cover a tensor").read_row(row, out);
        }
        true
    }
}
