//! `lone convert`.

use std::path::PathBuf;

use clap::Args;

use super::{ConversionArgs, MODEL_HELP, MODEL_LONG_HELP};

const EXAMPLES: &str = "\
Examples:
  lone convert --model ./LFM3-1.7B --out bundles/lfm3-1.7b
  lone convert --model LiquidAI/LFM2-350M --out lfm2 --ctx 4096 --spec-drafts 16
  lone convert --model demo --out demo-bundle --force";

/// Convert a checkpoint to a bundle of Core ML programs
///
/// The bundle appears when it is complete: a conversion that is interrupted, or runs out of space, leaves nothing. A second
/// Ctrl-C ends it at once, and leaves a directory `.NAME.partial-PID` until the next conversion there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    #[arg(long, value_name = "MODEL", help = MODEL_HELP, long_help = MODEL_LONG_HELP)]
    pub(crate) model: String,

    /// Directory to make; its parents are made too
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Replace the bundle at --out
    #[arg(long)]
    pub(crate) force: bool,

    /// Do not ask Core ML where it will run the operations; on macOS that is asked, and kept in the bundle
    #[arg(long)]
    pub(crate) no_plan: bool,

    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}
