//! The energy meter of the server's machine, which both answers and `/metrics` read.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lone_energy::{Energy, EnergyWatch, Mark};

/// A meter that several threads read.
#[derive(Debug)]
pub(crate) struct Meter(Mutex<EnergyWatch>);

impl Meter {
    pub(crate) fn new(watch: EnergyWatch) -> Self {
        Meter(Mutex::new(watch))
    }

    fn watch(&self) -> MutexGuard<'_, EnergyWatch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This moment; `None` if the meter does not tell any more.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.watch().mark().ok()
    }

    /// What was used from one moment to another.
    pub(crate) fn between(&self, from: &Mark, to: &Mark) -> Energy {
        self.watch().between(from, to)
    }

    /// The same, if that was long enough for this meter.
    pub(crate) fn measured(&self, from: &Mark, to: &Mark) -> Option<Energy> {
        self.watch().measured(from, to)
    }
}
