//! Checkpoints with the dimensions of real models and random weights, for tests and benchmarks.
//!
//! Everything a loader looks at is there and valid: config, weights in one file or in shards, generation
//! defaults, a byte-level tokenizer of exactly the model's vocabulary, and a ChatML template. What such a model
//! says means nothing; how fast and in how much memory it says it is that of the real one.

mod model;
mod random;
mod safetensors;
mod tensors;
mod tokenizer;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

pub use model::{Family, Model, Preset};
pub use random::DType;

/// What to write.
#[derive(Debug, Clone)]
pub struct Options {
    /// The dimensions.
    pub model: Model,
    /// Element type of all weights.
    pub dtype: DType,
    /// Number of safetensors files.
    pub shards: usize,
    /// Equal seeds give equal weights, whatever the shards.
    pub seed: u64,
    /// Whether to write a tokenizer and a chat template.
    pub tokenizer: bool,
}

impl Options {
    /// One bf16 file with a tokenizer, seed 0.
    pub fn new(model: Model) -> Self {
        Options { model, dtype: DType::Bf16, shards: 1, seed: 0, tokenizer: true }
    }
}

/// Writes the checkpoint into the directory `out`, which it creates; files of the same names are replaced.
///
/// # Errors
/// Dimensions that contradict each other, and whatever keeps a file from being written.
pub fn write(out: &Path, options: &Options) -> anyhow::Result<()> {
    let model = &options.model;
    model.check()?;
    ensure!(options.shards > 0, "a checkpoint has at least one shard");
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    write_json(&out.join("config.json"), &model.config(options.dtype))?;
    write_json(&out.join("generation_config.json"), &tokenizer::generation_config())?;
    if options.tokenizer {
        write_json(&out.join("tokenizer.json"), &tokenizer::tokenizer(model.vocab)?)?;
        write_json(&out.join("tokenizer_config.json"), &tokenizer::tokenizer_config())?;
        write_file(&out.join("chat_template.jinja"), tokenizer::CHAT_TEMPLATE.as_bytes())?;
    }
    safetensors::write(out, &tensors::tensors(model), options)
}

fn write_json(path: &Path, value: &serde_json::Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("JSON values serialize")?;
    write_file(path, text.as_bytes())
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests;
