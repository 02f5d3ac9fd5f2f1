//! How tokens are chosen: the settings, what the checkpoint says of them, and what they may be.

use std::collections::BTreeMap;

use lone_bundle::SamplingDefaults;

use crate::RequestError;

/// What may be added to a logit at a time: far more than models' logits differ by, and never enough to overflow.
const MOST_LOGITS: f32 = 1000.0;

/// What a bias may be: enough to forbid or to force a token, and never enough to overflow.
const MOST_BIAS: f32 = 1e30;

/// Settings of a [`Sampler`](crate::Sampler), which applies them in the order they stand in here, bias first.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Added to the logits of tokens.
    pub logit_bias: BTreeMap<u32, f32>,
    /// Tokens that have occurred, the prompt's included: positive logits are divided by it, others multiplied.
    /// 1 changes nothing.
    pub repetition_penalty: f32,
    /// Subtracted from the logits of tokens the answer has used.
    pub presence_penalty: f32,
    /// Subtracted from the logits of tokens for each time the answer has used them.
    pub frequency_penalty: f32,
    /// Logits are divided by it; 0 takes the likeliest token, the lowest id among equals, and what follows is moot.
    pub temperature: f32,
    /// Only this many likeliest tokens, the lowest ids among equals; 0 is all.
    pub top_k: usize,
    /// Of those, only the fewest likeliest that together have this probability, and at least one; 1 is all.
    pub top_p: f32,
    /// Of those, only tokens at least this likely relative to the likeliest; 0 is all.
    pub min_p: f32,
    /// The same seed and settings make the same choices; absent, every sampler makes its own.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    /// Greedy, and nothing else.
    fn default() -> Self {
        Sampling {
            logit_bias: BTreeMap::new(),
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: None,
        }
    }
}

impl From<&SamplingDefaults> for Sampling {
    /// As generation_config.json says: greedy unless it asks for sampling, by `do_sample` or by a temperature.
    fn from(defaults: &SamplingDefaults) -> Self {
        let nothing = Sampling::default();
        let temperature = match defaults.do_sample {
            Some(false) => 0.0,
            Some(true) => defaults.temperature.unwrap_or(1.0),
            None => defaults.temperature.unwrap_or(0.0),
        };
        Sampling {
            repetition_penalty: defaults.repetition_penalty.unwrap_or(nothing.repetition_penalty),
            temperature,
            top_k: defaults.top_k.unwrap_or(nothing.top_k),
            top_p: defaults.top_p.unwrap_or(nothing.top_p),
            min_p: defaults.min_p.unwrap_or(nothing.min_p),
            ..nothing
        }
    }
}

impl Sampling {
    /// Refuses what no sampler could follow.
    ///
    /// # Errors
    /// [`RequestError::Setting`], with the field, what it is and what it may be.
    pub fn check(&self, vocab_size: usize) -> Result<(), RequestError> {
        require("temperature", self.temperature, |t| t >= 0.0, "a number of at least 0")?;
        require("top_p", self.top_p, |p| (0.0..=1.0).contains(&p), "from 0 to 1")?;
        require("min_p", self.min_p, |p| (0.0..=1.0).contains(&p), "from 0 to 1")?;
        let (factor, logits) = (self.repetition_penalty, |penalty: f32| penalty.abs() <= MOST_LOGITS);
        require("repetition_penalty", factor, |r| (0.01..=100.0).contains(&r), "from 0.01 to 100")?;
        require("presence_penalty", self.presence_penalty, logits, "from -1000 to 1000")?;
        require("frequency_penalty", self.frequency_penalty, logits, "from -1000 to 1000")?;
        for (&id, &bias) in &self.logit_bias {
            require("logit_bias", bias, |bias| bias.abs() <= MOST_BIAS, "from -1e30 to 1e30")?;
            if id as usize >= vocab_size {
                let found = format!("for token {id}");
                return Err(RequestError::Setting {
                    field: "logit_bias",
                    found,
                    allowed: "for known tokens",
                });
            }
        }
        Ok(())
    }

    /// Whether what the answer has said so far makes a difference.
    pub(crate) fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }
}

fn require(
    field: &'static str,
    value: f32,
    holds: impl Fn(f32) -> bool,
    allowed: &'static str,
) -> Result<(), RequestError> {
    if value.is_finite() && holds(value) {
        return Ok(());
    }
    Err(RequestError::Setting { field, found: value.to_string(), allowed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_generation_config_does_not_say_is_greedy() {
        let said = |do_sample, temperature| {
            Sampling::from(&SamplingDefaults { do_sample, temperature, ..SamplingDefaults::default() })
                .temperature
        };
        assert_eq!(said(None, None), 0.0);
        assert_eq!(said(None, Some(0.3)), 0.3);
        assert_eq!(said(Some(true), None), 1.0);
        assert_eq!(said(Some(false), Some(0.3)), 0.0);
    }

    #[test]
    fn every_field_out_of_range_is_named_with_its_range() {
        let greedy = Sampling::default;
        let bad = [
            (
                Sampling { temperature: -0.5, ..greedy() },
                "temperature is -0.5, and must be a number of at least 0",
            ),
            (Sampling { temperature: f32::NAN, ..greedy() }, "temperature is NaN, and must be"),
            (Sampling { top_p: 1.5, ..greedy() }, "top_p is 1.5, and must be from 0 to 1"),
            (Sampling { min_p: -0.1, ..greedy() }, "min_p is -0.1, and must be from 0 to 1"),
            (
                Sampling { repetition_penalty: 0.0, ..greedy() },
                "repetition_penalty is 0, and must be from 0.01 to 100",
            ),
            (Sampling { presence_penalty: f32::INFINITY, ..greedy() }, "presence_penalty is inf"),
            (Sampling { frequency_penalty: f32::NAN, ..greedy() }, "frequency_penalty is NaN"),
            (
                Sampling { frequency_penalty: -2e3, ..greedy() },
                "frequency_penalty is -2000, and must be from -1000 to",
            ),
            (Sampling { logit_bias: [(1, f32::NAN)].into(), ..greedy() }, "logit_bias is NaN"),
            (
                Sampling { logit_bias: [(9, 1.0)].into(), ..greedy() },
                "logit_bias is for token 9, and must be for known",
            ),
        ];
        for (sampling, expected) in bad {
            let message = sampling.check(9).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message:?} does not start with {expected:?}");
        }
        assert_eq!(greedy().check(9), Ok(()));
    }
}
