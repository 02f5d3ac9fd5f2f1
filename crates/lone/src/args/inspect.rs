//! `lone inspect`.

use std::path::PathBuf;

use clap::Args;

use super::{MODEL_HELP, MODEL_LONG_HELP};

const EXAMPLES: &str = "\
Examples:
  lone inspect --bundle bundles/lfm3-1.7b
  lone inspect --bundle bundles/lfm3-1.7b --check
  lone inspect --model LiquidAI/LFM2-350M
  lone inspect --package bundles/lfm3-1.7b/chunk_00.mlpackage --text";

/// Show what a bundle, a checkpoint or a Core ML package holds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) target: InspectTarget,

    /// Compare every file of the bundle with its hash, and name those that differ
    #[arg(long, requires = "bundle", conflicts_with_all = ["model", "package"])]
    pub(crate) check: bool,

    /// Print the package's program in readable form
    #[arg(long, requires = "package", conflicts_with_all = ["bundle", "model", "json"])]
    pub(crate) text: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to look at: exactly one.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct InspectTarget {
    /// A bundle that `lone convert` made
    #[arg(long, value_name = "DIR")]
    pub(crate) bundle: Option<PathBuf>,

    #[arg(long, value_name = "MODEL", help = MODEL_HELP, long_help = MODEL_LONG_HELP)]
    pub(crate) model: Option<String>,

    /// Any Core ML package that holds an ML Program
    #[arg(long, value_name = "DIR.mlpackage")]
    pub(crate) package: Option<PathBuf>,
}
