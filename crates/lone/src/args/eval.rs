//! `lone eval`.

use std::path::PathBuf;

use clap::Args;

use super::{CONVERSION_FLAGS, ConversionArgs, EngineArgs, SourceArgs, number};

const EXAMPLES: &str = "\
Examples:
  lone eval --exam models/tiny-lfm3/exam.json --model models/tiny-lfm3
  lone eval --exam exam.json --bundle bundles/lfm3-1.7b --fraction 0.25 --json
  lone eval --exam exam.json --model ./LFM3-1.7B --reference";

const EXAM: &str = "Exam";

/// Count how many questions of an exam a model answers rightly
///
/// Each question has one right answer; the greedy answer must be that text exactly, special tokens kept and the token
/// that ends the turn removed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// A JSON file with `questions`, each of `task`, `messages`, perhaps `tools`, and `answer`
    #[arg(long, value_name = "FILE", help_heading = EXAM)]
    pub(crate) exam: PathBuf,

    /// Ask only questions of these tasks
    #[arg(long, value_name = "TASK,TASK,…", value_delimiter = ',', help_heading = EXAM)]
    pub(crate) tasks: Vec<String>,

    /// Ask only this share of the questions, evenly spread
    #[arg(long, value_name = "SHARE", value_parser = number::share, allow_negative_numbers = true, help_heading = EXAM)]
    pub(crate) fraction: Option<f64>,

    /// Ask only so many questions, evenly spread
    #[arg(long, value_name = "QUESTIONS", value_parser = number::at_least_one, allow_negative_numbers = true, help_heading = EXAM)]
    #[arg(conflicts_with = "fraction")]
    pub(crate) limit: Option<usize>,

    /// Which questions, where they are not all asked: the same seed asks the same ones
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = number::seed, allow_negative_numbers = true, help_heading = EXAM)]
    pub(crate) seed: u64,

    /// Have the checkpoint itself answer, in f32, instead of its bundle
    #[arg(long, conflicts_with_all = ["bundle", "backend", "threads", "huge_pages", "fast_int16", "ane_preset", "UnitsArgs"])]
    #[arg(conflicts_with_all = CONVERSION_FLAGS)]
    #[arg(help_heading = EXAM)]
    pub(crate) reference: bool,

    /// Print shares of right answers, and the wrong answers, as one JSON object
    #[arg(long, help_heading = EXAM)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}
