//! The vocabulary slices that turn final hidden states into logits.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use lone_mil::TensorMut;

use crate::pipeline::Surroundings;
use crate::{RunError, buffer::Buffer};

/// Entries of the vocabulary converted together.
const BLOCK: usize = 512;

/// All slices at each width they come in, narrowest first.
#[derive(Debug)]
pub(crate) struct Heads {
    widths: Vec<HeadWidth>,
}

/// The slices at one width.
#[derive(Debug)]
pub(crate) struct HeadWidth {
    /// S.
    pub(crate) tokens: usize,
    /// `(1, D, 1, S)`.
    pub(crate) hidden: Buffer,
    pub(crate) slices: Vec<HeadSlice>,
}

/// One slice's function.
#[derive(Debug)]
pub(crate) struct HeadSlice {
    /// Index of its graph, and of its model.
    pub(crate) graph: usize,
    pub(crate) function: String,
    /// First entry of the vocabulary it has.
    pub(crate) start: usize,
    /// `(1, V', 1, S)`.
    pub(crate) logits: Buffer,
}

impl Heads {
    /// `widths` is not empty.
    pub(crate) fn new(mut widths: Vec<HeadWidth>) -> Self {
        widths.sort_by_key(|width| width.tokens);
        Heads { widths }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let slices = |width: &HeadWidth| width.slices.iter().map(|slice| slice.logits.bytes()).sum::<u64>();
        self.widths.iter().map(|width| width.hidden.bytes() + slices(width)).sum()
    }

    /// Writes the logits of `columns` of `hidden (D, S')` to `logits (columns.len(), V)`.
    pub(crate) fn run(
        &mut self,
        surroundings: &mut Surroundings<'_>,
        hidden: &[f16],
        columns: Range<usize>,
        logits: &mut [f32],
    ) -> Result<(), RunError> {
        let vocab_size = surroundings.bundle.model.vocab_size;
        let fits = |width: &HeadWidth| width.tokens >= columns.len();
        let index = self.widths.iter().position(fits).unwrap_or(self.widths.len() - 1);
        let width = &mut self.widths[index];
        for (block, logits) in logits.chunks_mut(width.tokens * vocab_size).enumerate() {
            let start = columns.start + block * width.tokens;
            width.take(hidden, surroundings.bundle.model.hidden_size, start..columns.end);
            width.run(surroundings, logits)?;
        }
        Ok(())
    }
}

impl HeadWidth {
    /// Copies `columns` of `hidden (D, S')` to the slices' input; what stays free repeats the last of them.
    fn take(&mut self, hidden: &[f16], hidden_size: usize, columns: Range<usize>) {
        let given = hidden.len() / hidden_size;
        for (to, from) in self.hidden.chunks_exact_mut(self.tokens).zip(hidden.chunks_exact(given)) {
            for (column, value) in to.iter_mut().enumerate() {
                *value = from[(columns.start + column).min(columns.end - 1)];
            }
        }
    }

    /// Runs every slice and writes as many rows of logits as `logits (rows, V)` has.
    fn run(&mut self, surroundings: &mut Surroundings<'_>, logits: &mut [f32]) -> Result<(), RunError> {
        for slice in &mut self.slices {
            let mut outputs: [TensorMut<'_>; 1] = [slice.logits.as_mut()];
            let model = &mut surroundings.models[slice.graph];
            model.run(&slice.function, &[self.hidden.as_ref()], &mut outputs).map_err(|source| {
                let package = surroundings.bundle.graphs[slice.graph].package.clone();
                RunError::Backend { package, source }
            })?;
            slice.write_rows(self.tokens, surroundings.bundle.model.vocab_size, logits);
        }
        Ok(())
    }
}

impl HeadSlice {
    /// Copies its `logits (V', tokens)` to their place in as many rows as `logits (rows, V)` has.
    fn write_rows(&self, tokens: usize, vocab_size: usize, logits: &mut [f32]) {
        // A block of entries at a time, so that each is read from memory once and not for every row.
        for (block, entries) in self.logits.chunks(BLOCK * tokens).enumerate() {
            let start = self.start + block * BLOCK;
            for (column, row) in logits.chunks_exact_mut(vocab_size).enumerate() {
                let row = &mut row[start..start + entries.len() / tokens];
                if tokens == 1 {
                    entries.convert_to_f32_slice(row);
                    continue;
                }
                for (to, from) in row.iter_mut().zip(entries.chunks_exact(tokens)) {
                    *to = from[column].to_f32();
                }
            }
        }
    }
}
