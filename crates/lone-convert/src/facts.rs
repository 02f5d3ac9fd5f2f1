//! bundle.json's account of the model, from the checkpoint's configuration.

use lone_bundle::{LayerKind, ModelFacts, SamplingDefaults};
use lone_lfm::{Checkpoint, Config};

/// The facts of the model in `checkpoint`, which has `parameters` elements and is called `name` if not after its
/// directory.
pub(crate) fn model_facts(checkpoint: &Checkpoint, name: Option<&str>, parameters: u64) -> ModelFacts {
    let config = checkpoint.config();
    ModelFacts {
        name: name.map_or_else(|| directory_name(checkpoint), str::to_owned),
        model_type: config.arch.name().into(),
        hidden_size: config.hidden_size,
        ffn_size: config.ffn_size,
        layers: config.layers.iter().map(|&kind| layer_kind(kind)).collect(),
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        vocab_size: config.vocab_size,
        conv_taps: config.conv_taps,
        sliding_window: config.sliding_window,
        max_positions: config.max_positions,
        parameters,
        bos_token_id: config.bos_token_id,
        eos_token_ids: config.eos_token_ids.clone(),
        sampling: sampling(config),
    }
}

/// What the checkpoint's directory is called.
fn directory_name(checkpoint: &Checkpoint) -> String {
    let dir = checkpoint.dir();
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn layer_kind(kind: lone_lfm::LayerKind) -> LayerKind {
    match kind {
        lone_lfm::LayerKind::Conv => LayerKind::Conv,
        lone_lfm::LayerKind::FullAttention => LayerKind::FullAttention,
        lone_lfm::LayerKind::SlidingAttention => LayerKind::SlidingAttention,
    }
}

fn sampling(config: &Config) -> SamplingDefaults {
    let sampling = &config.sampling;
    SamplingDefaults {
        do_sample: Some(sampling.do_sample),
        temperature: sampling.temperature,
        top_k: sampling.top_k,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repetition_penalty: sampling.repetition_penalty,
    }
}
