//! What a model is asked.

use std::path::PathBuf;

use clap::Args;

use super::number;

const PROMPT: &str = "Prompt";

/// Absent flags mean stdin.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PromptArgs {
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
}

impl PromptArgs {
    /// Whether any of the flags is there.
    pub(crate) fn is_given(&self) -> bool {
        let PromptArgs { prompt, prompt_file, prompt_ids, chat, system } = self;
        *chat || prompt.is_some() || prompt_file.is_some() || prompt_ids.is_some() || system.is_some()
    }
}
