//! How a checkpoint becomes a bundle: flags of `convert`, and of whatever converts on first use.

use std::convert::Infallible;

use clap::{Args, ValueEnum};
use lone_convert::Calibration;

use super::number;

const SHAPES: &str = "Shapes";
const WEIGHTS: &str = "Weights and arithmetic";

/// All of these flags, for what does not go with any of them. A conflict with their group would name every one.
pub(crate) const CONVERSION_FLAGS: [&str; 14] = [
    "ctx",
    "prefill",
    "spec_drafts",
    "decode_only",
    "prefill_only",
    "layers_per_model",
    "head_chunks",
    "ring",
    "no_ring",
    "precision",
    "target_cos",
    "group",
    "calibrate",
    "no_precision_rules",
];

/// The flags that decide what a conversion makes of a checkpoint. Absent ones take the converter's defaults.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConversionArgs {
    /// Tokens the caches hold: the longest prompt and answer together. Of several lengths, each session begins with the
    /// shortest and moves up as it grows [default: 2048]
    #[arg(long, value_name = "TOKENS,…", value_delimiter = ',', value_parser = number::context, allow_negative_numbers = true, help_heading = SHAPES)]
    pub(crate) ctx: Option<Vec<usize>>,

    /// Tokens of a prompt computed in one pass. Of several sizes, each prompt takes the cheapest [default: 64]
    #[arg(long, value_name = "TOKENS,…", value_delimiter = ',', value_parser = number::pass_tokens, allow_negative_numbers = true, help_heading = SHAPES)]
    pub(crate) prefill: Option<Vec<usize>>,

    /// Add a pass that checks this many drafted tokens, for speculative decoding
    #[arg(long, value_name = "DRAFTS", value_parser = number::pass_tokens, allow_negative_numbers = true, help_heading = SHAPES)]
    pub(crate) spec_drafts: Option<usize>,

    /// Leave the prefill shape out: prompts are computed one token at a time
    #[arg(long, conflicts_with_all = ["prefill_only", "prefill"], help_heading = SHAPES)]
    pub(crate) decode_only: bool,

    /// Leave the decode shape out
    #[arg(long, conflicts_with = "spec_drafts", help_heading = SHAPES)]
    pub(crate) prefill_only: bool,

    /// Layers in one program [default: 4]
    #[arg(long, value_name = "LAYERS", value_parser = number::at_least_one, allow_negative_numbers = true, help_heading = SHAPES)]
    pub(crate) layers_per_model: Option<usize>,

    /// Programs the vocabulary is divided into; 0 takes about 128 MB each [default: 0]
    #[arg(long, value_name = "CHUNKS", value_parser = number::count, allow_negative_numbers = true, help_heading = SHAPES)]
    pub(crate) head_chunks: Option<usize>,

    /// Keep only the window of sliding layers, in a ring; this is the default
    #[arg(long, overrides_with = "no_ring", help_heading = SHAPES)]
    pub(crate) ring: bool,

    /// Keep all of the context for sliding layers too
    #[arg(long, overrides_with = "ring", help_heading = SHAPES)]
    pub(crate) no_ring: bool,

    /// How weights are stored [default: fp16]
    #[arg(long, value_enum, value_name = "PRECISION", help_heading = WEIGHTS)]
    pub(crate) precision: Option<Precision>,

    /// Cosine that the logits of `--precision auto` shall have with the checkpoint's [default: 0.999]
    #[arg(long, value_name = "COSINE", value_parser = number::cosine, allow_negative_numbers = true, help_heading = WEIGHTS)]
    pub(crate) target_cos: Option<f64>,

    /// Rows of a matrix that share a table of weights, or 0 for all [default: 16; 0 for lut8]
    #[arg(long, value_name = "ROWS", value_parser = number::count, allow_negative_numbers = true, help_heading = WEIGHTS)]
    pub(crate) group: Option<usize>,

    /// Fit palettes to what the model computes on this text, `builtin` for that which comes with lone; a .json file is a
    /// list of texts and of conversations with `messages` and `tools`
    #[arg(long, value_name = "FILE|builtin", value_parser = calibration, help_heading = WEIGHTS)]
    pub(crate) calibrate: Option<Calibration>,

    /// Build the graphs without the rules that keep the Neural Engine's arithmetic exact, to measure their worth
    #[arg(long, help_heading = WEIGHTS)]
    pub(crate) no_precision_rules: bool,
}

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    /// 16-bit floating point
    Fp16,
    /// 8-bit indices into tables of 256 weights
    Lut8,
    /// 6-bit indices into tables of 64 weights
    Lut6,
    /// 4-bit indices into tables of 16 weights
    Lut4,
    /// For each matrix what is enough for --target-cos
    Auto,
}

fn calibration(text: &str) -> Result<Calibration, Infallible> {
    Ok(match text {
        "builtin" => Calibration::Builtin,
        path => Calibration::File(path.into()),
    })
}
