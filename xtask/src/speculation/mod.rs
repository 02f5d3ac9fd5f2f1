//! What guessing tokens buys: passes saved and time gained, with and without each proposer, in one process.
//!
//! The trained models answer questions of their exam. Models of real dimensions have random weights, which copy
//! nothing; there the guesses are replayed with a scripted acceptance, and only what passes cost is measured.

mod exam;
mod replay;
mod watched;

use std::fmt::{self, Write};
use std::path::Path;
use std::time::Duration;

use lone_convert::{ConvertOptions, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime};
use lone_lfm::Checkpoint;

/// N, the guesses a pass checks.
const DRAFTS: usize = 16;

/// Both parts as Markdown tables.
///
/// # Errors
/// If the models in `models` cannot be read or converted, or there is no space for a checkpoint of real dimensions.
pub fn report(models: &Path, rounds: usize) -> anyhow::Result<String> {
    let mut page = String::new();
    exam::report(&mut page, models, rounds)?;
    writeln!(page)?;
    replay::report(&mut page, rounds)?;
    Ok(page)
}

/// The checkpoint in `dir`, converted and loaded on the CPU.
fn load(dir: &Path, ctx: usize) -> anyhow::Result<Runtime> {
    let parent = tempfile::tempdir()?;
    let bundle = parent.path().join("bundle");
    let options = ConvertOptions {
        ctx: vec![ctx],
        prefill: vec![64],
        spec_drafts: Some(DRAFTS),
        ..ConvertOptions::default()
    };
    convert(&Checkpoint::open(dir)?, &bundle, &options, &mut ())?;
    Ok(Runtime::load(&bundle, &CpuBackend::new(CpuOptions::default()), &LoadOptions::default())?)
}

/// The middle one of times that a noisy machine took.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How often `part` goes into `whole`.
fn ratio(whole: Duration, part: Duration) -> f64 {
    whole.as_secs_f64() / part.as_secs_f64()
}

/// A row of a Markdown table.
fn push_row(page: &mut String, cells: &[String]) -> fmt::Result {
    writeln!(page, "| {} |", cells.join(" | "))
}
