//! How tokens are chosen.

use clap::Args;

use super::number;

const SAMPLING: &str = "Sampling";

/// Absent flags take the checkpoint's generation_config.json, and greedy where that says nothing.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SamplingArgs {
    /// Flatten (above 1) or sharpen the distribution; 0 always takes the likeliest token
    #[arg(long, value_parser = number::not_negative, allow_negative_numbers = true, help_heading = SAMPLING)]
    pub(crate) temperature: Option<f32>,

    /// Choose among this many likeliest tokens; 0 among all
    #[arg(long, value_name = "TOKENS", value_parser = number::count, allow_negative_numbers = true, help_heading = SAMPLING)]
    pub(crate) top_k: Option<usize>,

    /// Choose among the likeliest tokens that together have this probability
    #[arg(long, value_name = "PROBABILITY", value_parser = number::positive_probability, allow_negative_numbers = true, help_heading = SAMPLING)]
    pub(crate) top_p: Option<f32>,

    /// Choose among tokens at least this likely, relative to the likeliest
    #[arg(long, value_name = "RATIO", value_parser = number::probability, allow_negative_numbers = true, help_heading = SAMPLING)]
    pub(crate) min_p: Option<f32>,

    /// Divide the odds of tokens that have occurred, the prompt's included; 1 changes nothing
    #[arg(long, value_name = "FACTOR", value_parser = number::penalty_factor, allow_negative_numbers = true, help_heading = SAMPLING)]
    pub(crate) repetition_penalty: Option<f32>,

    /// Subtract from the logits of tokens the answer has used
    #[arg(long, value_name = "LOGITS", value_parser = number::penalty, allow_negative_numbers = true)]
    #[arg(help_heading = SAMPLING)]
    pub(crate) presence_penalty: Option<f32>,

    /// Subtract from the logits of tokens, for each time the answer has used them
    #[arg(long, value_name = "LOGITS", value_parser = number::penalty, allow_negative_numbers = true)]
    #[arg(help_heading = SAMPLING)]
    pub(crate) frequency_penalty: Option<f32>,

    /// Make the same choices again: the same seed and settings give the same answer
    #[arg(long, value_name = "NUMBER", value_parser = number::seed, allow_negative_numbers = true, help_heading = SAMPLING)]
    pub(crate) seed: Option<u64>,
}
