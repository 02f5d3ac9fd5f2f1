//! `lone run`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};

use super::{ConversionArgs, EngineArgs, MODEL_HELP, MODEL_LONG_HELP, SamplingArgs, number};

const EXAMPLES: &str = "\
Examples:
  lone run --model demo --chat --prompt \"What is the capital of France?\"
  lone run --bundle bundles/lfm3-1.7b --prompt \"Once upon a time\" --temperature 0.7 --seed 1
  git diff | lone run --model LiquidAI/LFM2-1.2B --chat --system \"Summarise this change.\"
  lone run --bundle b --prompt-ids 1,5,7 --max-new-tokens 8 --json";

const MODEL: &str = "Model";
const PROMPT: &str = "Prompt";
const ANSWER: &str = "Answer";

/// Answer one prompt
///
/// The text appears as it is made; a line of statistics follows on stderr. Without a prompt flag the prompt is read
/// from stdin.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("source").required(true).args(["bundle", "model"])))]
pub(crate) struct RunArgs {
    /// A bundle that `lone convert` made
    #[arg(long, value_name = "DIR", conflicts_with = "ConversionArgs", help_heading = MODEL)]
    pub(crate) bundle: Option<PathBuf>,

    #[arg(long, value_name = "MODEL", help = MODEL_HELP, help_heading = MODEL)]
    #[arg(long_help = format!("{MODEL_LONG_HELP}. It is converted on first use, into the cache"))]
    pub(crate) model: Option<String>,

    /// The prompt
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, help_heading = PROMPT)]
    #[arg(conflicts_with_all = ["prompt_file", "prompt_ids"])]
    pub(crate) prompt: Option<String>,

    /// Read the prompt from a file; a line break at its end does not count
    #[arg(long, value_name = "FILE", conflicts_with = "prompt_ids", help_heading = PROMPT)]
    pub(crate) prompt_file: Option<PathBuf>,

    /// The prompt as token ids, for models without a tokenizer: nothing is added to them
    #[arg(long, value_name = "ID,ID,…", value_delimiter = ',', conflicts_with = "chat", help_heading = PROMPT)]
    #[arg(value_parser = number::token_id, allow_negative_numbers = true)]
    pub(crate) prompt_ids: Option<Vec<u32>>,

    /// Ask as a user in a conversation, by the model's chat template, instead of continuing the text
    #[arg(long, help_heading = PROMPT)]
    pub(crate) chat: bool,

    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "chat", conflicts_with = "prompt_ids", help_heading = PROMPT)]
    pub(crate) system: Option<String>,

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
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}
