//! `lone run`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::{PromptArgs, SamplingArgs, SetupArgs, SourceArgs, number};

const EXAMPLES: &str = "\
Examples:
  lone run --model demo --chat --prompt \"What is the capital of France?\"
  lone run --bundle bundles/lfm3-1.7b --prompt \"Once upon a time\" --temperature 0.7 --seed 1
  git diff | lone run --model LiquidAI/LFM2-1.2B --chat --system \"Summarise this change.\"
  lone run --model demo --chat --spec suffix --prompt \"Copy this code: x = add(x, 1)\"
  lone run --bundle b --prompt-ids 1,5,7 --max-new-tokens 8 --json";

const ANSWER: &str = "Answer";

/// Answer one prompt
///
/// The text appears as it is made; a line of statistics follows on stderr. Without a prompt flag the prompt is read
/// from stdin.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) prompt: PromptArgs,

    /// Longest answer
    #[arg(long, value_name = "TOKENS", default_value_t = 256, value_parser = number::at_least_one, allow_negative_numbers = true)]
    #[arg(help_heading = ANSWER)]
    pub(crate) max_new_tokens: usize,

    /// End the answer before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = ANSWER)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) stop: Vec<String>,

    /// Print text, tokens and statistics as one JSON object at the end
    #[arg(long, help_heading = ANSWER)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,

    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}
