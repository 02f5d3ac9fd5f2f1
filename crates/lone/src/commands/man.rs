//! `lone man`: manual pages, one a command.

use clap::CommandFactory;

use super::Context;
use crate::args::{Cli, ManArgs};
use crate::failure::{Failure, UserError};
use crate::quantity::counted;

/// Writes the pages.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn execute(args: &ManArgs, context: &Context) -> Result<(), Failure> {
    let dir = args.dir.display();
    let refused = |error: std::io::Error| UserError::new(format_args!("cannot write {dir}: {error}"));
    std::fs::create_dir_all(&args.dir).map_err(refused)?;
    let cli = Cli::command().disable_help_subcommand(true);
    let pages = cli.get_subcommands().filter(|command| !command.is_hide_set()).count() + 1;
    clap_mangen::generate_to(cli, &args.dir).map_err(refused)?;
    context.ui.note(format_args!("{} in {dir}", counted(pages, "page")));
    Ok(())
}
