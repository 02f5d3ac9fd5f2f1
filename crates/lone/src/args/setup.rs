//! How a model that answers is set up.

use clap::Args;

use super::{ConversionArgs, EngineArgs, SessionArgs, SpeculationArgs};

/// What `run`, `chat` and `serve` ask of a model, besides which one it is.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) speculation: SpeculationArgs,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}
