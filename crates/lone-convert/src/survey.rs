//! The first pass over a checkpoint: how large each tensor's elements get, and the hash of it all.
//!
//! What fp16 cannot hold is found here, before anything is written, and what scaling it can bear is known before
//! the graphs are built.

use std::collections::BTreeMap;
use std::fs;

use lone_lfm::checkpoint::{Checkpoint, F16_MAX, Tensor};

use crate::{ConvertError, Phase, Progress};

/// What stays in a core's cache between hashing and looking for the largest.
const BLOCK_BYTES: usize = 1 << 18;

/// What is known of the tensors.
#[derive(Debug)]
pub(crate) struct Survey {
    largest: BTreeMap<String, f32>,
    /// BLAKE3 of config.json and of every tensor's bytes in the order of [`tensors`].
    pub(crate) source_hash: String,
    /// Elements of all tensors.
    pub(crate) parameters: u64,
}

impl Survey {
    /// Reads everything once.
    ///
    /// # Errors
    /// [`ConvertError::Range`] naming the first tensor with elements that fp16 cannot hold, and how many it has.
    pub(crate) fn new(checkpoint: &Checkpoint, progress: &mut dyn Progress) -> Result<Self, ConvertError> {
        let tensors = tensors(checkpoint);
        progress.begin(Phase::Survey, tensors.iter().map(|tensor| stored_bytes(tensor) as u64).sum());
        let config = checkpoint.dir().join("config.json");
        let mut hasher = blake3::Hasher::new();
        hasher.update(&fs::read(&config).map_err(ConvertError::io("read", &config))?);
        let mut largest = BTreeMap::new();
        for tensor in &tensors {
            largest.insert(tensor.name().to_owned(), read_through(tensor, &mut hasher, progress)?);
        }
        Ok(Survey {
            largest,
            source_hash: hasher.finalize().to_hex().to_string(),
            parameters: tensors.iter().map(|tensor| tensor.len() as u64).sum(),
        })
    }

    /// Whether all elements of the tensor stay within fp16 when multiplied by `scale`.
    pub(crate) fn bears(&self, tensor: &Tensor<'_>, scale: f32) -> bool {
        self.largest[tensor.name()] * scale <= F16_MAX
    }
}

/// Every tensor once, in the order the model uses them.
fn tensors(checkpoint: &Checkpoint) -> Vec<Tensor<'_>> {
    let mut all = vec![checkpoint.embed()];
    for layer in 0..checkpoint.config().layers.len() {
        checkpoint.layer(layer).map(|&tensor| all.push(tensor));
    }
    all.push(checkpoint.final_norm());
    if !checkpoint.config().tied {
        all.push(checkpoint.head());
    }
    all
}

fn stored_bytes(tensor: &Tensor<'_>) -> usize {
    tensor.len() * tensor.dtype().bytes()
}

/// The largest magnitude of a tensor whose elements all fit fp16.
fn read_through(
    tensor: &Tensor<'_>,
    hasher: &mut blake3::Hasher,
    progress: &mut dyn Progress,
) -> Result<f32, ConvertError> {
    let row_bytes = tensor.row_len() * tensor.dtype().bytes();
    let block = (BLOCK_BYTES / row_bytes).max(1);
    let mut largest = 0f32;
    tensor.prefetch(0..tensor.rows());
    for start in (0..tensor.rows()).step_by(block) {
        if progress.is_cancelled() {
            return Err(ConvertError::Cancelled);
        }
        let rows = start..tensor.rows().min(start + block);
        let bytes = tensor.row_bytes(rows.clone());
        hasher.update(bytes);
        largest = largest.max(tensor.max_abs(rows));
        progress.advance(bytes.len() as u64);
    }
    if largest <= F16_MAX {
        return Ok(largest);
    }
    let faults = tensor.range_faults(0..tensor.rows(), 1.0);
    Err(ConvertError::Range {
        tensor: tensor.name().to_owned(),
        path: tensor.path().to_owned(),
        non_finite: faults.non_finite,
        too_large: faults.too_large,
    })
}
