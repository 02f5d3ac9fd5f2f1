//! Dimensions of the published models, and the config.json that states them.

use anyhow::ensure;
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::DType;

/// The two architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are theirs")]
pub enum Family {
    Lfm2,
    Lfm3,
}

/// The models whose dimensions are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are theirs")]
pub enum Preset {
    #[value(name = "lfm2-350m")]
    Lfm2_350m,
    #[value(name = "lfm2-700m")]
    Lfm2_700m,
    #[value(name = "lfm2-1.2b")]
    Lfm2_1_2b,
    #[value(name = "lfm3-1.7b")]
    Lfm3_1_7b,
}

impl Preset {
    /// The model's dimensions.
    pub fn model(self) -> Model {
        let lfm2 = |hidden, ffn, heads| Model {
            family: Family::Lfm2,
            hidden,
            ffn,
            layers: 16,
            heads,
            kv_heads: 8,
            head_dim: 64,
            taps: 3,
            window: 0,
            vocab: 65_536,
            tied: true,
            conv_bias: false,
        };
        match self {
            Preset::Lfm2_350m => lfm2(1024, 4608, 16),
            Preset::Lfm2_700m => lfm2(1536, 6912, 24),
            Preset::Lfm2_1_2b => lfm2(2048, 8192, 32),
            Preset::Lfm3_1_7b => Model {
                family: Family::Lfm3,
                layers: 24,
                kv_heads: 4,
                head_dim: 128,
                taps: 7,
                window: 256,
                vocab: 128_000,
                ..lfm2(2048, 7680, 16)
            },
        }
    }
}

/// The dimensions of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Decides names, norms and layer kinds.
    pub family: Family,
    /// D.
    pub hidden: usize,
    /// F.
    pub ffn: usize,
    /// Number of layers.
    pub layers: usize,
    /// H.
    pub heads: usize,
    /// G.
    pub kv_heads: usize,
    /// d.
    pub head_dim: usize,
    /// K.
    pub taps: usize,
    /// Keys a sliding layer sees; LFM2 has no such layers.
    pub window: usize,
    /// V.
    pub vocab: usize,
    /// Whether the head is the embedding table.
    pub tied: bool,
    /// Whether projections and taps of convolution layers have biases.
    pub conv_bias: bool,
}

impl Model {
    /// The kind of layer `i`, as config.json spells it: LFM2's published list, LFM3's rule.
    pub(super) fn layer_kind(&self, i: usize) -> &'static str {
        match self.family {
            Family::Lfm2 if [2, 5, 8, 10, 12, 14].contains(&i) => "full_attention",
            Family::Lfm3 if i % 4 == 2 => "full_attention",
            Family::Lfm3 if i.is_multiple_of(4) && i > 0 => "sliding_attention",
            _ => "conv",
        }
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Model { hidden, heads, kv_heads, head_dim, .. } = *self;
        ensure!(self.layers > 0 && self.ffn > 0 && self.taps > 1, "a model has layers, width and taps");
        ensure!(kv_heads > 0 && heads.is_multiple_of(kv_heads), "{heads} heads do not share {kv_heads}");
        ensure!(head_dim > 0 && head_dim.is_multiple_of(2), "head dimension {head_dim} has no halves");
        ensure!(
            self.family == Family::Lfm3 || heads * head_dim == hidden,
            "LFM2 needs d = D / H, and {head_dim} is not {hidden} / {heads}"
        );
        ensure!(self.family == Family::Lfm2 || self.window > 0, "a sliding layer sees at least itself");
        Ok(())
    }

    /// The content of config.json.
    pub(super) fn config(&self, dtype: DType) -> Value {
        let kinds: Vec<&str> = (0..self.layers).map(|i| self.layer_kind(i)).collect();
        let mut config = json!({
            "hidden_size": self.hidden,
            "intermediate_size": self.ffn,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "layer_types": kinds,
            "conv_L_cache": self.taps,
            "conv_bias": self.conv_bias,
            "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied,
            "dtype": dtype.config_name(),
            "norm_eps": 1e-5,
            "max_position_embeddings": 128_000,
            "bos_token_id": 1,
            "eos_token_id": 7,
            "pad_token_id": 0,
            "use_cache": true,
        });
        let config_map = config.as_object_mut().expect("it is written as one");
        config_map.append(&mut self.family_config());
        config
    }

    fn family_config(&self) -> Map<String, Value> {
        let config = match self.family {
            Family::Lfm2 => json!({
                "model_type": "lfm2",
                "architectures": ["Lfm2ForCausalLM"],
                "block_auto_adjust_ff_dim": false,
                "rope_parameters": { "rope_type": "default", "rope_theta": 1_000_000.0 },
            }),
            Family::Lfm3 => json!({
                "model_type": "lfm3",
                "architectures": ["Lfm3ForCausalLM"],
                "head_dim": self.head_dim,
                "sliding_window": self.window,
                "use_sandwich_norm": true,
                "use_attention_gate": true,
                "attention_bias": false,
                "rope_parameters": {
                    "sliding_attention": { "rope_type": "default", "rope_theta": 10_000.0 },
                    "full_attention": {
                        "rope_type": "proportional",
                        "rope_theta": 1_000_000.0,
                        "partial_rotary_factor": 0.5,
                    },
                },
            }),
        };
        let Value::Object(map) = config else { unreachable!("it is written as one") };
        map
    }
}
