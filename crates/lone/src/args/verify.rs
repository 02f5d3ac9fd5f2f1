//! `lone verify`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::{CONVERSION_FLAGS, ConversionArgs, EngineArgs, MODEL_HELP, MODEL_LONG_HELP, PromptArgs, number};

const EXAMPLES: &str = "\
Examples:
  lone verify --bundle bundles/lfm3-1.7b --model ./LFM3-1.7B --prompt \"The sky is blue because\"
  lone verify --model demo --chat --prompt \"What is the capital of France?\" --max-new-tokens 32 --plot drift.svg
  lone verify --bundle bundles/lfm3-1.7b --reference LFM3-1.7B/golden.safetensors --min-cos 0.9999
  lone verify --model demo --prompt-ids 1,5,7 --ranges --json";

const MODEL: &str = "Model";
const COMPARISON: &str = "Comparison";
const RESULT: &str = "Result";

/// Compare a bundle with its checkpoint, layer by layer
///
/// The bundle reads the prompt on a backend, the checkpoint reads it in f32, and what they make of it is compared. The
/// bundle's files are compared with their hashes first. Exits with 1 where the logits are less alike than --min-cos.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) target: VerifyTarget,

    #[command(flatten)]
    pub(crate) prompt: PromptArgs,

    /// What to compare with: `own`, the checkpoint in lone's own f32 arithmetic; `hf`, the checkpoint in Hugging Face
    /// transformers, run by LONE_PYTHON or python3; or a record made of either, whose tokens take the prompt's place
    #[arg(long, value_name = "own|hf|FILE", default_value = "own", help_heading = COMPARISON)]
    pub(crate) reference: ReferenceChoice,

    /// The kind of pass that reads the prompt, in every size the bundle has
    #[arg(long, value_enum, value_name = "FUNCTION", default_value_t = FunctionChoice::Decode)]
    #[arg(help_heading = COMPARISON)]
    pub(crate) function: FunctionChoice,

    /// Answer greedily with so many tokens at most, and find the first that the reference would not have chosen
    #[arg(long, value_name = "TOKENS", default_value_t = 0, value_parser = number::count, allow_negative_numbers = true, help_heading = COMPARISON)]
    pub(crate) max_new_tokens: usize,

    /// The least mean cosine of the logits that will do
    #[arg(long, value_name = "COSINE", default_value = "0.999", value_parser = number::cosine)]
    #[arg(allow_negative_numbers = true, help_heading = COMPARISON)]
    pub(crate) min_cos: f64,

    /// Look at every value of the programs, and name those that come near the limits of fp16 or of the Neural Engine
    #[arg(long, help_heading = COMPARISON)]
    pub(crate) ranges: bool,

    /// Draw how hidden states drift from layer to layer
    #[arg(long, value_name = "FILE.svg", help_heading = RESULT)]
    pub(crate) plot: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, help_heading = RESULT)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}

/// A bundle, its checkpoint, or both.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct VerifyTarget {
    /// A bundle that `lone convert` made; without it, the checkpoint's is made on first use
    #[arg(long, value_name = "DIR", conflicts_with_all = CONVERSION_FLAGS, help_heading = MODEL)]
    pub(crate) bundle: Option<PathBuf>,

    #[arg(long, value_name = "MODEL", help = MODEL_HELP, long_help = MODEL_LONG_HELP, help_heading = MODEL)]
    pub(crate) model: Option<String>,
}

/// What to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReferenceChoice {
    /// The checkpoint, in lone's own f32 arithmetic.
    Own,
    /// The checkpoint, by transformers.
    Transformers,
    /// A record.
    File(PathBuf),
}

impl FromStr for ReferenceChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "own" => ReferenceChoice::Own,
            "hf" => ReferenceChoice::Transformers,
            path => ReferenceChoice::File(path.into()),
        })
    }
}

/// A shape of pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FunctionChoice {
    /// One token at a time
    Decode,
    /// Blocks of a prompt
    Prefill,
    /// A token and its drafts
    Verify,
}
