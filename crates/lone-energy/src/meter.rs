//! The seam: what counts energy, whatever counts it.

use std::path::PathBuf;

use crate::Rail;

/// Something that counts the energy that parts of the system use.
pub trait EnergyMeter: Send {
    /// What it is called, such as `RAPL`.
    fn name(&self) -> &'static str;

    /// What has been counted since a moment that stays the same; always the same rails, in the same order.
    ///
    /// # Errors
    /// [`MeterError`] when the system does not tell any more.
    fn read(&mut self) -> Result<Counters, MeterError>;
}

/// What a meter has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// One a rail.
    pub rails: Vec<RailCounter>,
    /// What the Neural Engine read and wrote, where that is counted.
    pub neural_engine: Option<Traffic>,
}

/// The energy that a rail has used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailCounter {
    /// Which.
    pub rail: Rail,
    /// How much.
    pub joules: f64,
}

/// Bytes to and from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// From memory.
    pub read_bytes: u64,
    /// To memory.
    pub written_bytes: u64,
}

/// Why a meter tells nothing.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum MeterError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: expected a number, found {found:?}", path.display())]
    NotANumber { path: PathBuf, found: String },
    #[error("no zones of energy below {}", root.display())]
    NoZones { root: PathBuf },
    #[error("IOReport: {0}")]
    IoReport(&'static str),
    #[error("the counters of {meter} moved less than twice in {seconds} s")]
    Still { meter: &'static str, seconds: f64 },
}
