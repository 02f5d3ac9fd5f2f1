//! Flags of every command that answers: what a session may take.

use clap::Args;
use lone_engine::{LoadOptions, SessionOptions};

use super::number;

/// The limits of a session.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// Most memory for a session's caches, such as 512MB or 2GiB: contexts that need more are left out
    #[arg(long, value_name = "SIZE", value_parser = number::bytes, allow_negative_numbers = true, help_heading = "Engine")]
    kv_budget: Option<u64>,

    /// Lock a session's caches in memory, so that pressure pushes out weights, which can be read again
    #[arg(long, help_heading = "Engine")]
    wire_caches: bool,
}

impl SessionArgs {
    /// What of a bundle can be needed within these limits.
    pub(crate) fn load_options(&self) -> LoadOptions {
        LoadOptions { kv_budget_bytes: self.kv_budget, ..LoadOptions::default() }
    }

    /// The options of a session within these limits.
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions {
            kv_budget_bytes: self.kv_budget,
            wire_caches: self.wire_caches,
            ..SessionOptions::default()
        }
    }
}
