//! The first pass over a checkpoint: how large each tensor's elements get, and the hash of it all.
//!
//! What fp16 cannot hold is found here, before anything is written, and what scaling it can bear is known before
//! the graphs are built.

use std::collections::BTreeMap;
use std::ops::Range;

use lone_lfm::checkpoint::{Checkpoint, F16_MAX, Tensor};
use lone_lfm::regular_file;

use crate::workers::{self, Report};
use crate::{ConvertError, Phase, Progress};

/// What is hashed as one, and surveyed by one worker.
const PIECE_BYTES: usize = 16 << 20;

/// What stays in a core's cache between hashing and looking for the largest.
const BLOCK_BYTES: usize = 1 << 18;

/// What is known of the tensors.
#[derive(Debug)]
pub(crate) struct Survey {
    largest: BTreeMap<String, f32>,
    /// BLAKE3 of config.json and of the BLAKE3 of each piece of every tensor, in the order of [`tensors`].
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
        hasher.update(&regular_file::read(&config).map_err(ConvertError::io("read", &config))?);
        let pieces: Vec<Piece<'_>> = tensors.iter().flat_map(Piece::all_of).collect();
        let findings = workers::spread(&pieces, workers::processors(), progress, Piece::read_through)?;
        let mut largest = BTreeMap::<String, f32>::new();
        for (piece, finding) in pieces.iter().zip(findings) {
            hasher.update(finding.hash.as_bytes());
            let largest = largest.entry(piece.tensor.name().to_owned()).or_default();
            *largest = largest.max(finding.largest);
        }
        tensors.iter().try_for_each(|tensor| check_range(tensor, largest[tensor.name()]))?;
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
    tensor.rows() * row_bytes(tensor)
}

fn row_bytes(tensor: &Tensor<'_>) -> usize {
    tensor.row_len() * tensor.dtype().bytes()
}

/// Some rows of a tensor.
#[derive(Debug)]
struct Piece<'c> {
    tensor: Tensor<'c>,
    rows: Range<usize>,
}

/// What a piece holds.
struct Finding {
    hash: blake3::Hash,
    /// Magnitude; infinite if any element is infinite or NaN.
    largest: f32,
}

impl<'c> Piece<'c> {
    fn all_of(tensor: &Tensor<'c>) -> impl Iterator<Item = Piece<'c>> + use<'c> {
        let tensor = *tensor;
        let step = (PIECE_BYTES / row_bytes(&tensor)).max(1);
        let piece = move |start| Piece { tensor, rows: start..tensor.rows().min(start + step) };
        (0..tensor.rows()).step_by(step).map(piece)
    }

    fn read_through(&self, report: &Report<'_>) -> Result<Finding, ConvertError> {
        let Piece { tensor, rows } = self;
        let step = (BLOCK_BYTES / row_bytes(tensor)).max(1);
        let mut hasher = blake3::Hasher::new();
        let mut largest = 0f32;
        tensor.prefetch(rows.clone());
        for start in rows.clone().step_by(step) {
            let block = start..rows.end.min(start + step);
            let bytes = tensor.row_bytes(block.clone());
            hasher.update(bytes);
            largest = largest.max(tensor.max_abs(block));
            report.advance(bytes.len() as u64)?;
        }
        Ok(Finding { hash: hasher.finalize(), largest })
    }
}

fn check_range(tensor: &Tensor<'_>, largest: f32) -> Result<(), ConvertError> {
    if largest <= F16_MAX {
        return Ok(());
    }
    let faults = tensor.range_faults(0..tensor.rows(), 1.0);
    Err(ConvertError::Range {
        tensor: tensor.name().to_owned(),
        path: tensor.path().to_owned(),
        non_finite: faults.non_finite,
        too_large: faults.too_large,
    })
}
