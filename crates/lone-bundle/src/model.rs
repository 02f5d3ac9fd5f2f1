//! What the model is, apart from its graphs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts about the model that whoever runs it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// What to call it, usually the checkpoint directory's name.
    pub name: String,
    /// `model_type` of the checkpoint: `lfm2` or `lfm3`.
    pub model_type: String,
    /// D.
    pub hidden_size: usize,
    /// F.
    pub ffn_size: usize,
    /// One entry a layer.
    pub layers: Vec<LayerKind>,
    /// H.
    pub heads: usize,
    /// G.
    pub kv_heads: usize,
    /// d.
    pub head_dim: usize,
    /// V.
    pub vocab_size: usize,
    /// K, the taps of the short convolution.
    pub conv_taps: usize,
    /// Keys a sliding layer sees, the query's own included.
    pub sliding_window: Option<usize>,
    /// Longest sequence the checkpoint was made for.
    pub max_positions: usize,
    /// Parameters, the tied head counted once.
    pub parameters: u64,
    /// Put in front of a raw prompt.
    pub bos_token_id: Option<u32>,
    /// Any of these ends an answer.
    pub eos_token_ids: Vec<u32>,
    /// From `generation_config.json`.
    pub sampling: SamplingDefaults,
}

/// The kinds of layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are config.json's")]
pub enum LayerKind {
    Conv,
    FullAttention,
    SlidingAttention,
}

/// Sampling as the checkpoint's `generation_config.json` asks for it; absent means not said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are generation_config.json's")]
pub struct SamplingDefaults {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub do_sample: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f32>,
}

/// A rotary embedding's frequencies: angle of pair i at position p is `p * inv_freq[i]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rope {
    /// d/2 frequencies; the tables are `concat(f, f)`, d rows.
    pub inv_freq: Vec<f32>,
}

/// The token embedding table: row-major fp16.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Embeddings {
    /// File in the bundle.
    pub file: String,
    /// V.
    pub rows: usize,
    /// D.
    pub columns: usize,
}

/// How the bundle came to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the lone that converted it.
    pub lone_version: String,
    /// BLAKE3 of the checkpoint: of its config and of its tensors' bytes in the order they were read.
    pub source_hash: String,
    /// The conversion flags that differ in effect, by flag name.
    pub flags: BTreeMap<String, serde_json::Value>,
}
