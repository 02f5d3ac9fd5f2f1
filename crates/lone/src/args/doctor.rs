//! `lone doctor`.

use std::path::PathBuf;

use clap::Args;

use super::{MODEL_HELP, MODEL_LONG_HELP, number};

const EXAMPLES: &str = "\
Examples:
  lone doctor
  lone doctor --report report.md
  lone doctor --bundle bundles/lfm3-1.7b
  lone doctor --model LiquidAI/LFM2-350M --json";

/// Prove that lone works on this machine
///
/// Runs a model, the one this program carries unless another is named, on every backend there is here: each kind of pass
/// is compared with the checkpoint, and loading, decoding and, where there is a meter, energy are measured. The first load
/// is cold: Core ML compiles to an empty directory, which goes after the trial. Exits with 1 if anything is not as it
/// should be.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// A bundle that `lone convert` made; its decode passes on the CPU backend take the checkpoint's place
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    pub(crate) bundle: Option<PathBuf>,

    #[arg(long, value_name = "MODEL", default_value = crate::demo::NAME, help = MODEL_HELP)]
    #[arg(long_help = format!("{MODEL_LONG_HELP}. It is converted on first use, into the cache, for short contexts"))]
    pub(crate) model: String,

    /// Tokens to decode when speed is measured
    #[arg(long = "gen", value_name = "TOKENS", default_value_t = 32, value_parser = number::at_least_one)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) decoded: usize,

    /// Write what is printed to this file too, as Markdown to attach to an issue
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
