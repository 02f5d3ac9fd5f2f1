//! `lone chat`.

use clap::{Args, Parser};

use super::{SamplingArgs, SetupArgs, SourceArgs, number};

const EXAMPLES: &str = "\
Examples:
  lone chat --model demo
  lone chat --bundle bundles/lfm3-1.7b --system \"Be terse.\" --temperature 0.7
  printf 'What is the capital of France?\\nAnd of Japan?\\n' | lone chat --model demo --json

Inside, /help lists the commands. A text between two \"\"\" may have several lines, and Alt-Enter begins another line.
Ctrl-C stops an answer; Ctrl-D or /exit ends the conversation.";

const CHAT: &str = "Conversation";

/// Talk with a model
///
/// The model stays loaded, and each turn computes only the tokens it adds. After each answer its cost follows on stderr.
/// Without a terminal each line of stdin is a turn or a command, and the exit code is 1 if any was refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = CHAT)]
    pub(crate) system: Option<String>,

    /// Print each answer with its tokens and statistics as one JSON object in a line
    #[arg(long, help_heading = CHAT)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// What can be changed during a conversation.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SettingArgs {
    /// Longest answer; as long as the context allows unless given
    #[arg(long, value_name = "TOKENS", value_parser = number::at_least_one, allow_negative_numbers = true)]
    #[arg(help_heading = CHAT)]
    pub(crate) max_new_tokens: Option<usize>,

    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
}

/// The settings as flags alone, which is how `/set` is understood.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(crate) struct SettingLine {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}
