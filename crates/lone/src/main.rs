//! The `lone` command: parse what was typed, run it, report how it ended.

#![forbid(unsafe_code)]

mod args;
mod backend;
mod bundle;
mod commands;
mod conversion;
mod converted;
mod demo;
mod energy;
mod environment;
mod failure;
mod hub;
mod interrupt;
mod lock;
mod machine;
mod memory;
mod placement;
mod prompt;
mod quantity;
mod sampling;
mod source;
mod speculation;
mod ui;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use commands::Context;
use environment::Environment;
use failure::Failure;
use interrupt::Interrupt;
use ui::Ui;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ui::usage(&error),
    };
    let environment = Environment::of_process();
    let ui = Ui::new(cli.quiet, &environment);
    let context = Context { ui, environment, interrupt: Interrupt::default() };
    // The panic hook has said what happened and where; what is left is the exit code of our own faults.
    let outcome = catch_unwind(AssertUnwindSafe(|| commands::dispatch(cli.command, &context)))
        .unwrap_or_else(|_| Err(Failure::internal("a panic, described above")));
    context.ui.conclude(outcome)
}
