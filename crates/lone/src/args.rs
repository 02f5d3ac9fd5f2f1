//! What was typed. What it resolves to is decided by each command, in one place, before any work starts.

mod bench;
mod chat;
mod conversion;
mod convert;
mod doctor;
mod engine;
mod eval;
mod inspect;
mod number;
mod prompt;
mod run;
mod sampling;
mod serve;
mod session;
mod setup;
mod shells;
mod source;
mod speculation;
#[cfg(test)]
mod tests;
mod verify;
mod warm;

use clap::{Parser, Subcommand};

use crate::environment::VARIABLES;

pub(crate) use bench::BenchArgs;
pub(crate) use chat::{ChatArgs, SettingArgs, SettingLine};
use conversion::CONVERSION_FLAGS;
pub(crate) use conversion::{ConversionArgs, Precision};
pub(crate) use convert::ConvertArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use engine::{AnePreset, BackendChoice, EngineArgs, UnitsArgs, UnitsChoice};
pub(crate) use eval::EvalArgs;
pub(crate) use inspect::InspectArgs;
pub(crate) use number::MOST_CONTEXT;
pub(crate) use prompt::PromptArgs;
pub(crate) use run::RunArgs;
pub(crate) use sampling::SamplingArgs;
pub(crate) use serve::{LogFormat, LogLevel, ServeArgs};
pub(crate) use session::SessionArgs;
pub(crate) use setup::SetupArgs;
pub(crate) use shells::{CompletionsArgs, ManArgs};
pub(crate) use source::SourceArgs;
pub(crate) use speculation::{SpecChoice, SpeculationArgs};
pub(crate) use verify::{FunctionChoice, ReferenceChoice, VerifyArgs};
pub(crate) use warm::WarmArgs;

/// Heading of the flags every command has.
const GLOBAL: &str = "Everywhere";

/// How `--model` is explained, wherever it stands.
const MODEL_HELP: &str = "A checkpoint directory, `org/name[@revision]` on the Hugging Face hub, or `demo`";
const MODEL_LONG_HELP: &str = "\
A checkpoint: a directory with config.json and safetensors weights; `org/name` or `org/name@revision`, fetched from the \
Hugging Face hub unless a directory of that name exists; or `demo`, a small model that is part of this program \
(`./demo` is a directory)";

const EXAMPLES: &str = "\
Examples:
  lone run --model demo --chat --prompt \"What is the capital of France?\"
  lone run --model LiquidAI/LFM2-350M --chat --prompt \"Why is the sky blue?\"
  lone chat --model demo
  lone serve --model demo
  lone convert --model ./LFM3-1.7B --out bundles/lfm3-1.7b
  lone inspect --bundle bundles/lfm3-1.7b

Exit codes: 0 success, 1 something is wrong with what was given, 2 usage or a fault in lone, 130 interrupted.";

/// Language models on the Apple Neural Engine: convert Liquid AI's LFM2, LFM2.5 and LFM3 checkpoints to Core ML
/// programs, and run them
#[derive(Debug, Parser)]
#[command(name = "lone", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = EXAMPLES, after_long_help = long_after_help())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Say nothing but results, warnings and errors
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Convert(ConvertArgs),
    Run(Box<RunArgs>),
    Chat(Box<ChatArgs>),
    Serve(Box<ServeArgs>),
    Verify(Box<VerifyArgs>),
    Eval(Box<EvalArgs>),
    Inspect(InspectArgs),
    Bench(Box<BenchArgs>),
    Warm(Box<WarmArgs>),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

fn long_after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nEnvironment variables:\n");
    for variable in VARIABLES {
        text += &format!("  {:<16}{}\n", variable.name, variable.purpose);
    }
    text
}
