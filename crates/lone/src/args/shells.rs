//! `lone completions`.

use clap::Args;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  lone completions bash > ~/.local/share/bash-completion/completions/lone
  lone completions zsh > \"${fpath[1]}/_lone\"
  lone completions fish > ~/.config/fish/completions/lone.fish";

/// Print a script that completes lone's commands and flags in a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}
