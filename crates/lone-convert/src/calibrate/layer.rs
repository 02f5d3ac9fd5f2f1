//! A layer as its palettes have it.

use std::collections::BTreeMap;
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use lone_lfm::{Substitute, Tensor};

use crate::palette::{Matrix, Palettized};

/// What the palettes of some tensors stand for, written out: it is read once for every sequence.
#[derive(Debug, Default)]
pub(super) struct ExpandedLayer {
    /// By tensor, (rows, C).
    tensors: BTreeMap<String, Vec<f16>>,
}

impl ExpandedLayer {
    /// Writes out a matrix, which is some rows of a tensor.
    pub(super) fn insert(&mut self, matrix: &Matrix<'_>, parts: &[Palettized]) {
        let (tensor, width) = (&matrix.tensor, matrix.tensor.row_len());
        let name = tensor.name().to_owned();
        let expanded = self.tensors.entry(name).or_insert_with(|| vec![f16::ZERO; tensor.rows() * width]);
        let mut row = vec![0.0; width];
        for number in matrix.rows.clone() {
            matrix.read_row(parts, number, &mut row);
            expanded[number * width..(number + 1) * width].convert_from_f32_slice(&row);
        }
    }
}

impl Substitute for ExpandedLayer {
    fn read_rows_f32(&self, matrix: &Tensor<'_>, rows: Range<usize>, out: &mut [f32]) -> bool {
        let Some(expanded) = self.tensors.get(matrix.name()) else { return false };
        let width = matrix.row_len();
        expanded[rows.start * width..rows.end * width].convert_to_f32_slice(out);
        true
    }
}
