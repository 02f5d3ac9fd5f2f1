//! A checkpoint: what its configuration says, and the files its weights are in.

use std::collections::BTreeSet;

use lone_lfm::{Checkpoint, Config, Tensor};
use serde::Serialize;

use super::Report;
use crate::failure::Failure;
use crate::quantity::Bytes;
use crate::source::CheckpointDir;
use crate::ui::Ui;

/// What a checkpoint holds.
#[derive(Debug, Serialize)]
pub(super) struct CheckpointReport {
    checkpoint: String,
    name: String,
    model_type: &'static str,
    /// The tied head counted once.
    parameters: u64,
    dtypes: BTreeSet<String>,
    layers: Vec<&'static str>,
    hidden_size: usize,
    ffn_size: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    vocab_size: usize,
    conv_taps: usize,
    sliding_window: Option<usize>,
    max_positions: usize,
    tied: bool,
    bos_token_id: Option<u32>,
    eos_token_ids: Vec<u32>,
    has_tokenizer: bool,
    files: Vec<FileReport>,
}

#[derive(Debug, Serialize)]
struct FileReport {
    file: String,
    bytes: u64,
}

impl CheckpointReport {
    /// Opens the checkpoint, which checks that every tensor is there and has its shape.
    pub(super) fn of(source: &CheckpointDir, ui: &Ui) -> Result<Self, Failure> {
        let checkpoint = Checkpoint::open(&source.dir)?;
        for warning in checkpoint.warnings() {
            ui.warn(warning);
        }
        let mut totals = Totals::default();
        totals.add_all(&checkpoint);
        let config: &Config = checkpoint.config();
        let file = |path: &std::path::Path| FileReport {
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: std::fs::metadata(path).map_or(0, |file| file.len()),
        };
        Ok(CheckpointReport {
            checkpoint: source.dir.display().to_string(),
            name: source.name.clone(),
            model_type: config.arch.name(),
            parameters: totals.parameters,
            dtypes: totals.dtypes,
            layers: config.layers.iter().map(|layer| layer.name()).collect(),
            hidden_size: config.hidden_size,
            ffn_size: config.ffn_size,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            vocab_size: config.vocab_size,
            conv_taps: config.conv_taps,
            sliding_window: config.sliding_window,
            max_positions: config.max_positions,
            tied: config.tied,
            bos_token_id: config.bos_token_id,
            eos_token_ids: config.eos_token_ids.clone(),
            has_tokenizer: source.dir.join("tokenizer.json").is_file(),
            files: checkpoint.weight_files().map(file).collect(),
        })
    }
}

/// Sums over tensors.
#[derive(Debug, Default)]
struct Totals {
    parameters: u64,
    dtypes: BTreeSet<String>,
}

impl Totals {
    fn add_all(&mut self, checkpoint: &Checkpoint) {
        self.add(&checkpoint.embed());
        self.add(&checkpoint.final_norm());
        if !checkpoint.config().tied {
            self.add(&checkpoint.head());
        }
        for layer in 0..checkpoint.config().layers.len() {
            checkpoint.layer(layer).map(|tensor| self.add(tensor));
        }
    }

    fn add(&mut self, tensor: &Tensor<'_>) {
        self.parameters += tensor.len() as u64;
        self.dtypes.insert(format!("{:?}", tensor.dtype()).to_lowercase());
    }
}

impl Report for CheckpointReport {
    fn print(&self, ui: &Ui) -> Result<(), Failure> {
        ui.heading(format_args!("{} ({})", self.name, self.model_type))?;
        let dtypes: Vec<&str> = self.dtypes.iter().map(String::as_str).collect();
        let optional =
            |value: Option<usize>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        let rows = [
            ("checkpoint", self.checkpoint.clone()),
            ("parameters", format!("{} in {}", self.parameters, dtypes.join(", "))),
            ("layers", format!("{}: {}", self.layers.len(), self.layers.join(" "))),
            ("hidden", self.hidden_size.to_string()),
            ("feed-forward", self.ffn_size.to_string()),
            (
                "attention",
                format!("{} heads of {}, {} for keys and values", self.heads, self.head_dim, self.kv_heads),
            ),
            ("window", optional(self.sliding_window)),
            ("convolution", format!("{} taps", self.conv_taps)),
            (
                "vocabulary",
                format!("{}, head {}", self.vocab_size, if self.tied { "tied" } else { "of its own" }),
            ),
            ("made for", format!("{} positions", self.max_positions)),
            (
                "tokenizer",
                if self.has_tokenizer { "yes" } else { "none: run it with --prompt-ids" }.to_owned(),
            ),
        ];
        for (name, value) in rows {
            ui.line(format_args!("  {name:<13}{value}"))?;
        }
        for file in &self.files {
            ui.line(format_args!("  {:<13}{}, {}", "weights", file.file, Bytes(file.bytes)))?;
        }
        Ok(())
    }
}
