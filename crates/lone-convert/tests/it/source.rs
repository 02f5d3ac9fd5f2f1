//! The weights that a checkpoint should become.

use std::collections::BTreeMap;
use std::ops::Range;

use half::f16;
use lone_lfm::{Checkpoint, Tensor};

/// All tensors of a checkpoint, by what they are called in a program.
pub(crate) struct Source<'c> {
    pub(crate) tensors: BTreeMap<String, Tensor<'c>>,
    rules: bool,
}

impl<'c> Source<'c> {
    /// With or without the precision rules.
    pub(crate) fn new(checkpoint: &'c Checkpoint, rules: bool) -> Self {
        Source { tensors: tensors(checkpoint), rules }
    }

    /// The tensor that a value is, or is a part or a tap of.
    pub(crate) fn tensor_of(&self, value: &str) -> (&str, &Tensor<'c>) {
        let whole = |suffix: &str| value.rsplit_once(suffix).map_or(value, |(whole, _)| whole);
        let names = [value, whole("_part"), whole("_tap")];
        let found = names.iter().find_map(|name| self.tensors.get_key_value(*name));
        let (name, tensor) = found.unwrap_or_else(|| panic!("`{value}` is no tensor of the checkpoint"));
        (name, tensor)
    }

    /// A part of a tensor in fp16, times 16 where it is a matrix wider than 1024.
    pub(crate) fn rounded(&self, tensor: &Tensor<'_>, rows: Range<usize>, columns: Range<usize>) -> Vec<f16> {
        let is_wide = tensor.shape().len() == 2 && tensor.row_len() > 1024;
        let scale = if self.rules && is_wide { 16.0 } else { 1.0 };
        let mut row_values = vec![0.0; tensor.row_len()];
        let mut halves = Vec::new();
        for row in rows {
            tensor.read_rows_f32(row..row + 1, &mut row_values);
            let part = &row_values[columns.clone()];
            halves.extend(part.iter().map(|value| f16::from_f32(value * scale)));
        }
        halves
    }
}

fn tensors(checkpoint: &Checkpoint) -> BTreeMap<String, Tensor<'_>> {
    let mut all = vec![checkpoint.embed(), checkpoint.head(), checkpoint.final_norm()];
    for layer in 0..checkpoint.config().layers.len() {
        checkpoint.layer(layer).map(|&tensor| all.push(tensor));
    }
    let name = |tensor: &Tensor<'_>| {
        tensor.name().trim_start_matches("model.").trim_end_matches(".weight").replace('.', "_")
    };
    all.into_iter().map(|tensor| (name(&tensor), tensor)).collect()
}
