//! What answers cost in energy, where there is a meter: watts and joules a token. Elsewhere nothing is said of it.

use std::path::PathBuf;

use lone_energy::{Energy, EnergyMeter, EnergyWatch, Mark, MeterError, Rapl};
use serde::Serialize;

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

/// What some tokens cost.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EnergyReport {
    /// Of all rails.
    joules: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    joules_per_token: Option<f64>,
    watts: f64,
    /// Above what is drawn while nothing is computed.
    active_watts: f64,
    rails: Vec<RailReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ane_read_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ane_written_bytes: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
struct RailReport {
    rail: String,
    joules: f64,
    watts: f64,
    idle_watts: f64,
}

impl EnergyReport {
    /// Of `tokens`.
    pub(crate) fn of(energy: &Energy, tokens: usize) -> Self {
        let joules = energy.joules();
        let rails = energy.rails.iter().map(|rail| RailReport {
            rail: rail.rail.to_string(),
            joules: rail.joules,
            watts: energy.per_second(rail.joules),
            idle_watts: rail.idle_watts,
        });
        EnergyReport {
            joules,
            joules_per_token: (tokens > 0).then(|| joules / tokens as f64),
            watts: energy.watts(),
            active_watts: energy.active_watts(),
            rails: rails.collect(),
            ane_read_bytes: energy.neural_engine.map(|traffic| traffic.read_bytes),
            ane_written_bytes: energy.neural_engine.map(|traffic| traffic.written_bytes),
        }
    }

    /// As `5.20 W, 3.10 W above idle, 0.092 J/token`.
    pub(crate) fn line(&self) -> String {
        let per_token = self.joules_per_token.map(|joules| format!(", {joules:.3} J/token"));
        let EnergyReport { watts, active_watts, .. } = self;
        format!("{watts:.2} W, {active_watts:.2} W above idle{}", per_token.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use lone_energy::{Rail, RailEnergy};

    use super::*;

    #[test]
    fn energy_is_shown_by_watts_above_idle_and_by_token() {
        let rails = vec![
            RailEnergy { rail: Rail::NeuralEngine, joules: 6.0, idle_watts: 0.0 },
            RailEnergy { rail: Rail::Cpu, joules: 4.0, idle_watts: 1.5 },
        ];
        let energy = Energy { seconds: 2.0, rails, neural_engine: None };
        let report = EnergyReport::of(&energy, 20);
        assert_eq!(report.line(), "5.00 W, 3.50 W above idle, 0.500 J/token");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["rails"][1]["rail"], &json["rails"][1]["watts"]), (&"cpu".into(), &2.0.into()));
        assert_eq!(json.get("ane_read_bytes"), None);
        assert_eq!(EnergyReport::of(&energy, 0).line(), "5.00 W, 3.50 W above idle");
    }
}
