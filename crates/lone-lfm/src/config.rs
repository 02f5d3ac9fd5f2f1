//! config.json, read and validated once into plain numbers.
//!
//! Every spelling the format has had is resolved here, every default filled in, every derived width computed, and
//! whatever is not modelled refused by name: the rest of the program never looks at JSON again.

mod error;
mod fields;
mod generation;
mod layers;
mod rope;

use std::path::Path;

use serde_json::{Map, Value};

pub use error::ConfigError;
pub use generation::SamplingDefaults;
pub use layers::LayerKind;
pub use rope::{RopeConfig, RopeKind};

use crate::Warning;
use fields::{CONFIG, Fields};
use generation::GENERATION_CONFIG;

/// The two families of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// LFM2 and LFM2.5 (`model_type` "lfm2").
    Lfm2,
    /// LFM3 (`model_type` "lfm3").
    Lfm3,
}

impl Arch {
    /// The name config.json gives it.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Lfm2 => "lfm2",
            Arch::Lfm3 => "lfm3",
        }
    }
}

/// A model's facts. Sizes are within bounds that make every product of two of them fit in 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Family of the model.
    pub arch: Arch,
    /// D, width of the residual stream.
    pub hidden_size: usize,
    /// F, width of the feed-forward, with LFM2's adjustment applied.
    pub ffn_size: usize,
    /// Operator of each layer, first to last; never empty.
    pub layers: Vec<LayerKind>,
    /// H, query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// G, key/value heads.
    pub kv_heads: usize,
    /// d, width of a head; even.
    pub head_dim: usize,
    /// V, rows of the embedding table.
    pub vocab_size: usize,
    /// K, taps of the short convolution; at least 2.
    pub conv_taps: usize,
    /// Whether the short convolution and its two projections have biases.
    pub conv_bias: bool,
    /// Added to the mean square in every RMSNorm.
    pub norm_eps: f32,
    /// Whether operator and feed-forward outputs are normed before they are added (LFM3).
    pub sandwich_norm: bool,
    /// Whether a sigmoid gate scales each attention head's output (LFM3).
    pub attention_gate: bool,
    /// Positions a sliding layer sees, the query's own included; `None` where no layer slides.
    pub sliding_window: Option<usize>,
    /// Rotary embedding of full attention; `None` where no layer has it.
    pub full_rope: Option<RopeConfig>,
    /// Rotary embedding of sliding attention; `None` where no layer slides.
    pub sliding_rope: Option<RopeConfig>,
    /// Whether the head is the embedding table.
    pub tied: bool,
    /// Token a raw prompt starts with.
    pub bos_token_id: Option<u32>,
    /// Tokens that end an answer, generation_config.json's where it names any.
    pub eos_token_ids: Vec<u32>,
    /// How generation_config.json wants tokens sampled.
    pub sampling: SamplingDefaults,
    /// Longest context the model was made for, in tokens.
    pub max_positions: usize,
}

impl Config {
    /// Reads config.json and, where it exists, generation_config.json of a checkpoint directory.
    ///
    /// # Errors
    /// [`ConfigError`] names the file or the field, what was expected and what was found.
    pub fn open(dir: &Path) -> Result<(Config, Vec<Warning>), ConfigError> {
        let config = read_object(&dir.join(CONFIG))?;
        let generation = match read_object(&dir.join(GENERATION_CONFIG)) {
            Ok(object) => Some(object),
            Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Config::resolve(&config, generation.as_ref())
    }

    /// Parses the text of config.json and, where there is one, of generation_config.json.
    ///
    /// # Errors
    /// As [`Config::open`].
    pub fn parse(config: &str, generation: Option<&str>) -> Result<(Config, Vec<Warning>), ConfigError> {
        let config = parse_object(Path::new(CONFIG), config)?;
        let generation =
            generation.map(|text| parse_object(Path::new(GENERATION_CONFIG), text)).transpose()?;
        Config::resolve(&config, generation.as_ref())
    }

    fn resolve(
        config: &Map<String, Value>,
        generation: Option<&Map<String, Value>>,
    ) -> Result<(Config, Vec<Warning>), ConfigError> {
        let root = Fields { file: CONFIG, path: "", object: config };
        let generation = generation.map(generation::parse).transpose()?.unwrap_or_default();
        let mut warnings = Vec::new();
        let w = &mut warnings;
        let arch = parse_arch(&root)?;
        refuse_attention_bias(&root)?;
        refuse_other_arithmetic(&root)?;
        root.newest(&["dtype", "torch_dtype"], w);

        let layer_count = root.required_size(&["num_hidden_layers"], 1..=1024, w)?;
        let layers = layers::parse(arch, &root, layer_count, w)?;
        let (full_rope, sliding_rope) = rope::parse(arch, &root, &layers, w)?;
        let hidden_size = root.required_size(&["hidden_size", "block_dim"], 1..=1 << 20, w)?;
        let heads = parse_heads(arch, &root, hidden_size, w)?;
        let vocab_size = root.required_size(&["vocab_size"], 1..=1 << 24, w)?;
        let lfm3 = arch == Arch::Lfm3;
        let mut resolved = Config {
            arch,
            hidden_size,
            ffn_size: parse_ffn_size(arch, &root, w)?,
            sliding_window: parse_sliding_window(&root, &layers, w)?,
            layers,
            heads: heads.query,
            kv_heads: heads.key_value,
            head_dim: heads.dim,
            vocab_size,
            conv_taps: root.size(&["conv_L_cache"], 2..=256, w)?.unwrap_or(if lfm3 { 7 } else { 3 }),
            conv_bias: root.flag(&["conv_bias"], w)?.unwrap_or(false),
            norm_eps: root.number(NORM_EPS, 1e-30..=1.0, w)?.unwrap_or(1e-5) as f32,
            sandwich_norm: lfm3 && root.flag(&["use_sandwich_norm"], w)?.unwrap_or(true),
            attention_gate: lfm3 && root.flag(&["use_attention_gate"], w)?.unwrap_or(true),
            full_rope,
            sliding_rope,
            tied: root.flag(&["tie_word_embeddings", "tie_embedding"], w)?.unwrap_or(true),
            bos_token_id: generation.bos_token_id.or(root.token("bos_token_id")?),
            eos_token_ids: generation.eos_token_ids.or(root.tokens("eos_token_id")?).unwrap_or_default(),
            sampling: generation.sampling,
            max_positions: root.size(&["max_position_embeddings"], 1..=1 << 31, w)?.unwrap_or(128_000),
        };
        resolved.warn_of_foreign_tokens(w);
        // Every prompt would begin with it, and be refused.
        resolved.bos_token_id = resolved.bos_token_id.filter(|&token| (token as usize) < vocab_size);
        Ok((resolved, warnings))
    }

    /// The rotary embedding of a kind of layer; `None` for convolutions and kinds the model does not use.
    pub fn rope(&self, kind: LayerKind) -> Option<&RopeConfig> {
        match kind {
            LayerKind::Conv => None,
            LayerKind::FullAttention => self.full_rope.as_ref(),
            LayerKind::SlidingAttention => self.sliding_rope.as_ref(),
        }
    }

    fn warn_of_foreign_tokens(&self, warnings: &mut Vec<Warning>) {
        let bos = self.bos_token_id.map(|token| ("bos_token_id", token));
        let eos = self.eos_token_ids.iter().map(|&token| ("eos_token_id", token));
        for (field, token) in
            bos.into_iter().chain(eos).filter(|&(_, token)| token as usize >= self.vocab_size)
        {
            let vocab_size = self.vocab_size;
            warnings.push(Warning::TokenOutsideVocabulary { field: field.to_owned(), token, vocab_size });
        }
    }
}

const NORM_EPS: &[&str] = &["norm_eps", "rms_norm_eps", "block_norm_eps"];

fn read_object(path: &Path) -> Result<Map<String, Value>, ConfigError> {
    let text = crate::regular_file::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    parse_object(path, &text)
}

fn parse_object(path: &Path, text: &str) -> Result<Map<String, Value>, ConfigError> {
    serde_json::from_str(text)
        .map_err(|error| ConfigError::Json { path: path.to_owned(), reason: error.to_string() })
}

fn parse_arch(root: &Fields<'_>) -> Result<Arch, ConfigError> {
    let found = root.value("model_type").ok_or_else(|| root.missing(&["model_type"]))?;
    match found.as_str() {
        Some("lfm2") => Ok(Arch::Lfm2),
        Some("lfm3") => Ok(Arch::Lfm3),
        Some(other) => Err(ConfigError::UnknownModel { found: other.to_owned() }),
        None => Err(root.invalid("model_type", "a string", found)),
    }
}

fn refuse_attention_bias(root: &Fields<'_>) -> Result<(), ConfigError> {
    if root.flag(&["attention_bias"], &mut Vec::new())? == Some(true) {
        return Err(ConfigError::Unsupported {
            field: "attention_bias".to_owned(),
            found: "true".to_owned(),
            supported: "attention projections have no bias",
        });
    }
    Ok(())
}

/// Fields that say the weights or the feed-forward mean something else than what is computed here.
fn refuse_other_arithmetic(root: &Fields<'_>) -> Result<(), ConfigError> {
    let silu = ["silu", "swish"];
    let fields = [
        ("quantization_config", None, "weights are bf16, fp16 or fp32"),
        ("hidden_act", Some(silu), "the feed-forward's activation is \"silu\""),
    ];
    for (field, known, supported) in fields {
        let Some(found) = root.value(field) else { continue };
        if !found.as_str().zip(known).is_some_and(|(found, known)| known.contains(&found)) {
            return Err(ConfigError::Unsupported {
                field: field.to_owned(),
                found: found.to_string(),
                supported,
            });
        }
    }
    Ok(())
}

struct Heads {
    query: usize,
    key_value: usize,
    dim: usize,
}

/// H, G and d, which have to fit each other.
fn parse_heads(
    arch: Arch,
    root: &Fields<'_>,
    hidden_size: usize,
    w: &mut Vec<Warning>,
) -> Result<Heads, ConfigError> {
    let query = root.required_size(&["num_attention_heads", "num_heads"], 1..=1 << 16, w)?;
    let key_value = root.required_size(&["num_key_value_heads"], 1..=1 << 16, w)?;
    if !query.is_multiple_of(key_value) {
        let expected = format!("a divisor of the {query} heads of `num_attention_heads`");
        return Err(root.invalid("num_key_value_heads", expected, &key_value));
    }
    let stored_dim = root.size(&["head_dim"], 2..=1 << 16, w)?;
    let dim = match arch {
        Arch::Lfm3 => stored_dim.unwrap_or(128),
        Arch::Lfm2 => {
            if !hidden_size.is_multiple_of(query) {
                let expected = format!("a divisor of the {hidden_size} channels of `hidden_size`");
                return Err(root.invalid("num_attention_heads", expected, &query));
            }
            let dim = hidden_size / query;
            if let Some(stored) = stored_dim.filter(|&stored| stored != dim) {
                let expected = format!("`hidden_size` / `num_attention_heads` = {dim} in LFM2");
                return Err(root.invalid("head_dim", expected, &stored));
            }
            dim
        }
    };
    if !dim.is_multiple_of(2) {
        return Err(root.invalid("head_dim", "even, as rotary embeddings turn pairs", &dim));
    }
    Ok(Heads { query, key_value, dim })
}

/// F. LFM2 stores the width before a factor of 2/3, a multiplier and rounding up.
fn parse_ffn_size(arch: Arch, root: &Fields<'_>, w: &mut Vec<Warning>) -> Result<usize, ConfigError> {
    let stored = root.required_size(&["intermediate_size", "block_ff_dim"], 1..=1 << 22, w)?;
    if arch == Arch::Lfm3 || !root.flag(&["block_auto_adjust_ff_dim"], w)?.unwrap_or(true) {
        return Ok(stored);
    }
    let two_thirds = stored * 2 / 3;
    let multiple = root.size(&["block_multiple_of"], 1..=1 << 20, w)?.unwrap_or(256);
    let multiplier = root.number(&["block_ffn_dim_multiplier"], 1e-3..=1e3, w)?.unwrap_or(1.0);
    let adjusted = if root.is_null("block_ffn_dim_multiplier") {
        two_thirds
    } else {
        ((multiplier * two_thirds as f64) as usize).next_multiple_of(multiple)
    };
    if adjusted == 0 || adjusted > 1 << 22 {
        let expected = "a width that is from 1 to 4194304 after adjustment";
        return Err(root.invalid(
            "intermediate_size",
            expected,
            &format!("{stored}, adjusted to {adjusted}"),
        ));
    }
    Ok(adjusted)
}

fn parse_sliding_window(
    root: &Fields<'_>,
    layers: &[LayerKind],
    w: &mut Vec<Warning>,
) -> Result<Option<usize>, ConfigError> {
    if !layers.contains(&LayerKind::SlidingAttention) {
        return Ok(None);
    }
    if root.is_null("sliding_window") {
        return Err(root.invalid("sliding_window", "a number, as there are sliding layers", &Value::Null));
    }
    Ok(Some(root.size(&["sliding_window"], 1..=1 << 31, w)?.unwrap_or(256)))
}

#[cfg(test)]
mod tests;
