//! How tokens are chosen and how many answers there are: the fields all kinds of request share.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use lone_engine::Sampling;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Fields;
use crate::error::ApiError;

/// Stop strings a request may have.
const MOST_STOPS: usize = 4;
/// Answers a request may ask for.
const MOST_ANSWERS: usize = 16;

/// Settings of one request. What is absent is as the checkpoint's generation_config.json has it, and greedy where that
/// says nothing.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct Choosing {
    /// 0 takes the likeliest token.
    #[schema(minimum = 0, maximum = 2)]
    pub(crate) temperature: Option<f32>,
    /// Among the likeliest tokens that together have this probability.
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) top_p: Option<f32>,
    /// Among this many likeliest tokens; 0 is all. Not in OpenAI's API.
    pub(crate) top_k: Option<u32>,
    /// Among tokens at least this likely relative to the likeliest. Not in OpenAI's API.
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) min_p: Option<f32>,
    /// Divides the odds of tokens that have occurred, the prompt's included; 1 changes nothing. Not in OpenAI's API.
    #[schema(minimum = 0.01, maximum = 100)]
    pub(crate) repetition_penalty: Option<f32>,
    /// Subtracted from the logits of tokens the answer has used.
    #[schema(minimum = -2, maximum = 2)]
    pub(crate) presence_penalty: Option<f32>,
    /// Subtracted from the logits of tokens for each time the answer has used them.
    #[schema(minimum = -2, maximum = 2)]
    pub(crate) frequency_penalty: Option<f32>,
    /// Token id to what is added to its logit.
    pub(crate) logit_bias: Option<BTreeMap<String, f32>>,
    /// The same seed and settings make the same choices.
    pub(crate) seed: Option<i64>,
    /// Up to four texts that end the answer and are left out of it.
    pub(crate) stop: Option<Stop>,
    /// How many answers; each has a seed of its own.
    #[schema(minimum = 1, maximum = 16)]
    pub(crate) n: Option<u32>,
    /// Whether the answer comes as server-sent events.
    pub(crate) stream: Option<bool>,
    /// How, if it does.
    pub(crate) stream_options: Option<StreamOptions>,
}

/// One text or several.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(crate) enum Stop {
    One(String),
    Several(Vec<String>),
}

/// How answers stream.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamOptions {
    /// Whether a last chunk, with no choices, says what the answers cost.
    pub(crate) include_usage: Option<bool>,
    /// Whether every chunk says what they have cost so far, too. Not in OpenAI's API.
    pub(crate) continuous_usage_stats: Option<bool>,
    /// Accepted without effect: chunks are not padded.
    pub(crate) include_obfuscation: Option<bool>,
}

/// When a stream says what its answers cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageTold {
    /// In a chunk of its own.
    pub(crate) at_end: bool,
    /// In every chunk with news.
    pub(crate) always: bool,
}

impl Choosing {
    /// Takes the fields it knows.
    pub(crate) fn take(fields: &mut Fields) -> Result<Self, ApiError> {
        let choosing = Choosing {
            temperature: fields.take("temperature")?,
            top_p: fields.take("top_p")?,
            top_k: fields.take("top_k")?,
            min_p: fields.take("min_p")?,
            repetition_penalty: fields.take("repetition_penalty")?,
            presence_penalty: fields.take("presence_penalty")?,
            frequency_penalty: fields.take("frequency_penalty")?,
            logit_bias: fields.take("logit_bias")?,
            seed: fields.take("seed")?,
            stop: fields.take("stop")?,
            n: fields.take("n")?,
            stream: fields.take("stream")?,
            stream_options: fields.take("stream_options")?,
        };
        choosing.check()?;
        Ok(choosing)
    }

    fn check(&self) -> Result<(), ApiError> {
        within("temperature", self.temperature, 0.0..=2.0)?;
        within("top_p", self.top_p, 0.0..=1.0)?;
        within("min_p", self.min_p, 0.0..=1.0)?;
        within("presence_penalty", self.presence_penalty, -2.0..=2.0)?;
        within("frequency_penalty", self.frequency_penalty, -2.0..=2.0)?;
        within("n", self.n, 1..=MOST_ANSWERS as u32)?;
        for bias in self.logit_bias.iter().flat_map(BTreeMap::values) {
            within("logit_bias", Some(*bias), -100.0..=100.0)?;
        }
        if self.stops().len() > MOST_STOPS {
            return Err(ApiError::field("stop", format!("has more than {MOST_STOPS} texts")));
        }
        if self.stream_options.is_some() && !self.streams() {
            return Err(ApiError::field("stream_options", "is allowed only with `stream`"));
        }
        Ok(())
    }

    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn usage_told(&self) -> UsageTold {
        let StreamOptions { include_usage, continuous_usage_stats, .. } =
            self.stream_options.unwrap_or_default();
        UsageTold { at_end: include_usage.unwrap_or(false), always: continuous_usage_stats.unwrap_or(false) }
    }

    pub(crate) fn answers(&self) -> u32 {
        self.n.unwrap_or(1)
    }

    pub(crate) fn stops(&self) -> Vec<String> {
        match &self.stop {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop.clone()],
            Some(Stop::Several(stops)) => stops.clone(),
        }
    }

    /// The settings in force, over `defaults`, for a model of `vocab_size` tokens.
    pub(crate) fn sampling(&self, defaults: &Sampling, vocab_size: usize) -> Result<Sampling, ApiError> {
        let sampling = Sampling {
            logit_bias: self.biases()?,
            repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(defaults.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(defaults.frequency_penalty),
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_k: self.top_k.map_or(defaults.top_k, |top_k| top_k as usize),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            min_p: self.min_p.unwrap_or(defaults.min_p),
            seed: self.seed.map(i64::cast_unsigned),
        };
        sampling.check(vocab_size)?;
        Ok(sampling)
    }

    fn biases(&self) -> Result<BTreeMap<u32, f32>, ApiError> {
        // An id has one way to be written, so that no two keys mean the same token.
        let id = |token: &String| token.parse().ok().filter(|id: &u32| id.to_string() == *token);
        let bias = |(token, bias): (&String, &f32)| match id(token) {
            Some(id) => Ok((id, *bias)),
            None => {
                Err(ApiError::field("logit_bias", format!("has the key {token:?}, which is no token id")))
            }
        };
        self.logit_bias.iter().flatten().map(bias).collect()
    }
}

/// Refuses a value outside its bounds.
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: Option<T>,
    bounds: RangeInclusive<T>,
) -> Result<(), ApiError> {
    match value {
        Some(value) if !bounds.contains(&value) => {
            let problem = format!("is {value}, and must be from {} to {}", bounds.start(), bounds.end());
            Err(ApiError::field(name, problem).coded("invalid_value"))
        }
        _ => Ok(()),
    }
}
