//! The subcommands, and what they all are given.

mod answer;
mod bench;
mod chat;
mod completions;
mod convert;
mod cost;
mod doctor;
mod eval;
mod inspect;
mod man;
mod run;
mod serve;
mod verify;
mod warm;

use std::path::{Path, PathBuf};

use crate::args::Command;
use crate::environment::Environment;
use crate::failure::{Failure, UserError};
use crate::interrupt::Interrupt;
use crate::ui::Ui;

/// What a command may look at besides its own flags.
pub(crate) struct Context {
    pub(crate) ui: Ui,
    pub(crate) environment: Environment,
    pub(crate) interrupt: Interrupt,
}

impl Context {
    /// From here on there is work that Ctrl-C must be able to stop tidily.
    pub(crate) fn watch_for_interrupts(&self) {
        if let Err(error) = self.interrupt.watch() {
            self.ui.warn(format_args!("Ctrl-C will end lone without tidying up: {error}"));
        }
    }

    /// The directory for converted and unpacked models.
    ///
    /// # Errors
    /// If the environment names none.
    pub(crate) fn cache_dir(&self) -> Result<PathBuf, UserError> {
        self.environment.cache_dir().ok_or_else(|| {
            UserError::new("no place for a cache: the environment names no home directory")
                .with_hint("set LONE_CACHE to a directory")
        })
    }
}

/// Writes `text`, which a flag asks for in a file, to the file at `path`.
///
/// # Errors
/// If it cannot be written.
fn save(path: &Path, text: &str) -> Result<(), UserError> {
    std::fs::write(path, text)
        .map_err(|error| UserError::new(format_args!("cannot write {}: {error}", path.display())))
}

/// Runs `command`.
///
/// # Errors
/// As the command has it.
pub(crate) fn dispatch(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Convert(args) => convert::execute(&args, context),
        Command::Run(args) => run::execute(&args, context),
        Command::Chat(args) => chat::execute(&args, context),
        Command::Serve(args) => serve::execute(&args, context),
        Command::Verify(args) => verify::execute(&args, context),
        Command::Eval(args) => eval::execute(&args, context),
        Command::Inspect(args) => inspect::execute(&args, context),
        Command::Bench(args) => bench::execute(&args, context),
        Command::Warm(args) => warm::execute(&args, context),
        Command::Doctor(args) => doctor::execute(&args, context),
        Command::Completions(args) => completions::execute(&args, context),
        Command::Man(args) => man::execute(&args, context),
    }
}
