//! What answers cost in energy, where there is a meter: watts and joules a token. Elsewhere nothing is said of it.

use std::path::PathBuf;

use lone_energy::{Energy, EnergyMeter, EnergyWatch, Mark, MeterError, Rapl};

use crate::environment::Environment;

/// The meter of this system, its idle level measured: nothing should be computed yet. Where counters move seldom this takes some seconds.
///
/// # Errors
/// [`MeterError`] where there is none, or none that may be read.
pub(crate) fn open(environment: &Environment) -> Result<EnergyWatch, MeterError> {
    EnergyWatch::patient(meter(environment)?)
}

fn meter(environment: &Environment) -> Result<Box<dyn EnergyMeter>, MeterError> {
    let root = environment.path("LONE_POWERCAP");
    #[cfg(target_os = "macos")]
    if root.is_none() {
        return Ok(Box::new(lone_energy::IoReport::open()?));
    }
    let root = root.unwrap_or_else(|| PathBuf::from(Rapl::ROOT));
    Ok(Box::new(Rapl::open(&root)?))
}

/// Follows answers with the meter, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Metering {
    watch: Option<EnergyWatch>,
    /// When the answer began, when it had its first token, and when it ended; as many as have come about.
    marks: Vec<Mark>,
}

impl Metering {
    /// With the meter of this system, if it has one that nobody need wait for.
    pub(crate) fn open(environment: &Environment) -> Self {
        Metering { watch: meter(environment).and_then(EnergyWatch::new).ok(), marks: Vec::new() }
    }

    /// An answer begins.
    pub(crate) fn begin(&mut self) {
        self.marks.clear();
        self.mark();
    }

    /// Its next moment has come.
    pub(crate) fn mark(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        match watch.mark() {
            Ok(mark) => self.marks.push(mark),
            // A meter that fails once would tell too little from then on.
            Err(_) => *self = Metering::default(),
        }
    }

    /// What was used between the first two moments, and between the last two, where that can be told.
    pub(crate) fn phases(&self) -> [Option<Energy>; 2] {
        let (Some(watch), [begin, first, end]) = (&self.watch, &self.marks[..]) else { return [None, None] };
        [watch.measured(begin, first), watch.measured(first, end)]
    }
}
