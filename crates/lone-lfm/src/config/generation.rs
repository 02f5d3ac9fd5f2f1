//! What generation_config.json says: which tokens end an answer, and how to sample by default.

use serde_json::{Map, Value};

use super::ConfigError;
use super::fields::Fields;

/// Sampling defaults of a checkpoint; `None` where it says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingDefaults {
    /// Sample at all; greedy when false, or when the checkpoint says nothing.
    pub do_sample: bool,
    /// Divisor of the logits.
    pub temperature: Option<f32>,
    /// How many of the likeliest tokens are kept; 0 keeps all.
    pub top_k: Option<usize>,
    /// Probability mass that is kept.
    pub top_p: Option<f32>,
    /// Probability, relative to the likeliest token's, below which tokens are dropped.
    pub min_p: Option<f32>,
    /// Divisor of the positive logits (multiplier of the negative ones) of tokens already seen.
    pub repetition_penalty: Option<f32>,
}

/// The fields of generation_config.json that matter here.
#[derive(Debug, Default)]
pub(super) struct Generation {
    pub(super) bos_token_id: Option<u32>,
    pub(super) eos_token_ids: Option<Vec<u32>>,
    pub(super) sampling: SamplingDefaults,
}

pub(super) const GENERATION_CONFIG: &str = "generation_config.json";

pub(super) fn parse(object: &Map<String, Value>) -> Result<Generation, ConfigError> {
    let fields = Fields { file: GENERATION_CONFIG, path: "", object };
    let number = |name, range| -> Result<Option<f32>, ConfigError> {
        Ok(fields.number(&[name], range, &mut Vec::new())?.map(|value| value as f32))
    };
    Ok(Generation {
        bos_token_id: fields.token("bos_token_id")?,
        eos_token_ids: fields.tokens("eos_token_id")?,
        sampling: SamplingDefaults {
            do_sample: fields.flag(&["do_sample"], &mut Vec::new())?.unwrap_or(false),
            temperature: number("temperature", 0.0..=1e4)?,
            top_k: fields.size(&["top_k"], 0..=u32::MAX as usize, &mut Vec::new())?,
            top_p: number("top_p", 0.0..=1.0)?,
            min_p: number("min_p", 0.0..=1.0)?,
            repetition_penalty: number("repetition_penalty", 1e-3..=1e3)?,
        },
    })
}
