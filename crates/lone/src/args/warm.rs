//! `lone warm`.

use clap::Args;

use super::{ConversionArgs, EngineArgs, SourceArgs};

const EXAMPLES: &str = "\
Examples:
  lone warm --bundle bundles/lfm3-1.7b
  lone warm --model LiquidAI/LFM2-350M --compute-units all";

/// Load every function of a model once, so that later starts are quick
///
/// On macOS the first load of a function may take minutes, because the system makes it over for the Neural Engine. What
/// it made is kept until the system or the bundle changes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WarmArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}
