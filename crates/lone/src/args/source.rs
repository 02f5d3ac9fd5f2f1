//! Which model: a bundle, or a checkpoint that becomes one.

use std::path::PathBuf;

use clap::Args;

use super::{CONVERSION_FLAGS, MODEL_HELP, MODEL_LONG_HELP};

const MODEL: &str = "Model";

/// Exactly one of the two.
#[derive(Debug, Clone, Args)]
#[group(id = "source", required = true, multiple = false)]
pub(crate) struct SourceArgs {
    /// A bundle that `lone convert` made
    #[arg(long, value_name = "DIR", conflicts_with_all = CONVERSION_FLAGS, help_heading = MODEL)]
    pub(crate) bundle: Option<PathBuf>,

    #[arg(long, value_name = "MODEL", help = MODEL_HELP, help_heading = MODEL)]
    #[arg(long_help = format!("{MODEL_LONG_HELP}. It is converted on first use, into the cache"))]
    pub(crate) model: Option<String>,
}
