//! `lone completions`: a script that completes commands and flags.

use clap::CommandFactory;

use super::Context;
use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;

/// Prints the script.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn execute(args: &CompletionsArgs, context: &Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lone", &mut script);
    context.ui.write(&String::from_utf8_lossy(&script))
}
