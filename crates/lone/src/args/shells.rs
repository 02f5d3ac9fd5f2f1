//! `lone completions` and `lone man`: what packages install beside the program.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  lone completions bash > ~/.local/share/bash-completion/completions/lone
  lone completions zsh > \"${fpath[1]}/_lone\"
  lone completions fish > ~/.config/fish/completions/lone.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  lone man ~/.local/share/man/man1";

/// Print a script that completes lone's commands and flags in a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Write lone's manual pages, one a command
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// Directory to write them to; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
