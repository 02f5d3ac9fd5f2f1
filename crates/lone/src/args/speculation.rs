//! Flags of every command that may guess tokens: who guesses, and how many.

use clap::{Args, ValueEnum};

use super::number;

const SPECULATION: &str = "Speculation";

/// Who guesses the tokens of an answer, so that one pass checks several.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SpeculationArgs {
    /// Guess tokens from what stands before, and check several in one pass; the answer stays what it would be
    #[arg(long, value_enum, value_name = "PROPOSER", help_heading = SPECULATION)]
    pub(crate) spec: Option<SpecChoice>,

    /// The same as `--spec ngram`
    #[arg(long, conflicts_with = "spec", help_heading = SPECULATION)]
    pub(crate) spec_ngram: bool,

    /// Tokens that must be the same before `ngram` guesses [default: 12]
    #[arg(long, value_name = "TOKENS", value_parser = number::pass_tokens, allow_negative_numbers = true, help_heading = SPECULATION)]
    pub(crate) spec_n: Option<usize>,

    /// Most tokens guessed at once [default: 16]
    #[arg(long, value_name = "TOKENS", value_parser = number::pass_tokens, allow_negative_numbers = true, help_heading = SPECULATION)]
    pub(crate) spec_m: Option<usize>,

    /// What a pass that checks guesses costs, in passes of one token, for `suffix` to go by; measured unless given
    #[arg(long, value_name = "PASSES", value_parser = number::positive, allow_negative_numbers = true, help_heading = SPECULATION)]
    pub(crate) spec_cost: Option<f32>,
}

/// The choices of `--spec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpecChoice {
    /// What followed the last place where the same few tokens stood, as llama.cpp's ngram-simple
    Ngram,
    /// What followed the longest repeat, where experience says that it pays
    Suffix,
}
