//! Matrices as their palettes have them.

use std::collections::BTreeMap;
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use lone_lfm::{Substitute, Tensor};

use crate::palette::{Matrix, Palettized, on_all_cores};

/// Rows written out at a time.
const STRIP: usize = 64;

/// What the palettes of some tensors stand for, written out.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    /// By tensor, (rows, C).
    tensors: BTreeMap<String, Vec<f16>>,
}

impl Expanded {
    /// Writes out a matrix, which is some rows of a tensor.
    pub(super) fn insert(&mut self, matrix: &Matrix<'_>, parts: &[Palettized]) {
        let (tensor, width) = (&matrix.tensor, matrix.tensor.row_len());
        let name = tensor.name().to_owned();
        let expanded = self.tensors.entry(name).or_insert_with(|| vec![f16::ZERO; tensor.rows() * width]);
        let rows = &mut expanded[matrix.rows.start * width..matrix.rows.end * width];
        let strips = matrix.rows.clone().step_by(STRIP).zip(rows.chunks_mut(STRIP * width));
        on_all_cores(strips, |(first, strip): (usize, &mut [f16])| {
            let mut row = vec![0.0; width];
            for (number, out) in (first..).zip(strip.chunks_exact_mut(width)) {
                matrix.read_row(parts, number, &mut row);
                out.convert_from_f32_slice(&row);
            }
        });
    }
}

impl Substitute for Expanded {
    fn read_rows_f32(&self, matrix: &Tensor<'_>, rows: Range<usize>, out: &mut [f32]) -> bool {
        let Some(expanded) = self.tensors.get(matrix.name()) else { return false };
        let width = matrix.row_len();
        expanded[rows.start * width..rows.end * width].convert_to_f32_slice(out);
        true
    }
}
