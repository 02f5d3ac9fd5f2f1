//! Palettes that were made already.

use std::collections::BTreeMap;
use std::ops::Range;

use lone_lfm::{Substitute, Tensor};

use crate::palette::{Matrix, Palettized, WeightPrecision};

/// Palettes by tensor and width of index, in slices of rows.
#[derive(Debug, Default)]
pub(crate) struct PaletteStore<'c> {
    slices: BTreeMap<String, Vec<Slice<'c>>>,
}

/// Rows of a tensor.
#[derive(Debug)]
struct Slice<'c> {
    matrix: Matrix<'c>,
    parts: Vec<Palettized>,
}

impl<'c> PaletteStore<'c> {
    /// Keeps the parts of a matrix, and gives their size in bytes.
    pub(super) fn insert(&mut self, matrix: &Matrix<'c>, parts: Vec<Palettized>) -> u64 {
        let bytes = parts.iter().map(Palettized::bytes).sum();
        let slices = self.slices.entry(matrix.tensor.name().to_owned()).or_default();
        slices.push(Slice { matrix: matrix.clone(), parts });
        bytes
    }

    /// The parts that were made of this matrix.
    pub(crate) fn parts(&self, matrix: &Matrix<'_>) -> Option<Vec<Palettized>> {
        let slices = self.slices.get(matrix.tensor.name())?;
        let is_it = |made: &Matrix<'_>| made.rows == matrix.rows && made.format == matrix.format;
        slices.iter().find(|slice| is_it(&slice.matrix)).map(|slice| slice.parts.clone())
    }

    /// Of the slices of that width the one with that row.
    fn slice(&self, tensor: &str, precision: WeightPrecision, row: usize) -> Option<&Slice<'c>> {
        let is_it = |matrix: &Matrix<'_>| {
            Some(matrix.format.indices) == precision.index_dtype() && matrix.rows.contains(&row)
        };
        self.slices.get(tensor)?.iter().find(|slice| is_it(&slice.matrix))
    }
}

/// A width for some tensors, which the rest of the checkpoint is run with.
#[derive(Debug)]
pub(super) struct Chosen<'s> {
    pub(super) store: &'s PaletteStore<'s>,
    pub(super) precisions: &'s BTreeMap<String, WeightPrecision>,
}

impl Substitute for Chosen<'_> {
    fn read_rows_f32(&self, matrix: &Tensor<'_>, rows: Range<usize>, out: &mut [f32]) -> bool {
        let Some(&precision) = self.precisions.get(matrix.name()) else { return false };
        for (row, out) in rows.zip(out.chunks_exact_mut(matrix.row_len())) {
            let slice = self.store.slice(matrix.name(), precision, row);
            let Slice { matrix, parts } = slice.expect("slices cover a tensor");
            matrix.read_row(parts, row, out);
        }
        true
    }
}
