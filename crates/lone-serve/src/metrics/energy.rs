//! What the server's machine uses, where there is a meter.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use lone_energy::{Energy, Mark, RailEnergy};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::meter::Meter;

type Joules = Counter<f64, AtomicU64>;
type Number = Gauge<f64, AtomicU64>;

/// The numbers, and the meter they are read from when somebody asks for them.
#[derive(Debug)]
pub(super) struct EnergyMetrics {
    joules: Family<RailLabels, Joules>,
    watts: Family<RailLabels, Number>,
    active_watts: Family<RailLabels, Number>,
    joules_per_token: Family<RailLabels, Number>,
    ane_bytes: Family<TrafficLabels, Number>,
    meter: Arc<Meter>,
    /// When the numbers were last read.
    last: Mutex<Mark>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RailLabels {
    rail: String,
}

impl RailLabels {
    fn of(rail: &RailEnergy) -> Self {
        RailLabels { rail: rail.rail.to_string() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TrafficLabels {
    direction: &'static str,
}

impl EnergyMetrics {
    /// Begins to count with `meter`; `None` if it does not tell any more.
    pub(super) fn register(meter: Arc<Meter>, registry: &mut Registry) -> Option<Self> {
        let last = meter.mark()?;
        let metrics = EnergyMetrics {
            joules: Family::default(),
            watts: Family::default(),
            active_watts: Family::default(),
            joules_per_token: Family::default(),
            ane_bytes: Family::default(),
            meter,
            last: Mutex::new(last),
        };
        registry.register("energy_joules", "Joules the machine has used, by rail", metrics.joules.clone());
        let help = "Watts since these numbers were last read, by rail";
        registry.register("energy_watts", help, metrics.watts.clone());
        let help = "The same above what is drawn while nothing is computed";
        registry.register("energy_active_watts", help, metrics.active_watts.clone());
        let help = "Joules by token of the last request's answers, by rail";
        registry.register("energy_joules_per_token", help, metrics.joules_per_token.clone());
        let help = "Bytes the Neural Engine moved while the last request was answered";
        registry.register("last_request_ane_bytes", help, metrics.ane_bytes.clone());
        Some(metrics)
    }

    /// Reads the meter.
    pub(super) fn read(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A meter that does not tell any more leaves the numbers as they were.
        let Some(now) = self.meter.mark() else { return };
        self.add(&self.meter.between(&last, &now));
        *last = now;
    }

    /// Shows what a request used, whose answers have `tokens` in all.
    pub(super) fn answered(&self, energy: &Energy, tokens: usize) {
        for rail in &energy.rails {
            let by_token = rail.joules / tokens.max(1) as f64;
            self.joules_per_token.get_or_create(&RailLabels::of(rail)).set(by_token);
        }
        let Some(traffic) = energy.neural_engine else { return };
        for (direction, bytes) in [("read", traffic.read_bytes), ("written", traffic.written_bytes)] {
            self.ane_bytes.get_or_create(&TrafficLabels { direction }).set(bytes as f64);
        }
    }

    fn add(&self, energy: &Energy) {
        for rail in &energy.rails {
            let labels = RailLabels::of(rail);
            self.joules.get_or_create(&labels).inc_by(rail.joules);
            self.watts.get_or_create(&labels).set(energy.per_second(rail.joules));
            let active = energy.per_second(rail.active_joules(energy.seconds));
            self.active_watts.get_or_create(&labels).set(active);
        }
    }
}

#[cfg(test)]
mod tests {
    use lone_energy::{Counters, EnergyMeter, EnergyWatch, MeterError, Rail, RailCounter, Traffic};
    use prometheus_client::encoding::text::encode;

    use super::*;

    /// Counts four joules more at each reading.
    struct Steps(f64);

    impl EnergyMeter for Steps {
        fn name(&self) -> &'static str {
            "steps"
        }

        fn read(&mut self) -> Result<Counters, MeterError> {
            self.0 += 4.0;
            let rails = vec![RailCounter { rail: Rail::NeuralEngine, joules: self.0 }];
            let traffic = Traffic { read_bytes: 100 * self.0 as u64, written_bytes: 0 };
            Ok(Counters { rails, neural_engine: Some(traffic) })
        }
    }

    fn metrics(registry: &mut Registry) -> EnergyMetrics {
        let watch = EnergyWatch::new(Box::new(Steps(0.0))).unwrap();
        EnergyMetrics::register(Arc::new(Meter::new(watch)), registry).unwrap()
    }

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn joules_add_up_from_reading_to_reading() {
        let mut registry = Registry::with_prefix("lone");
        let metrics = metrics(&mut registry);
        for _ in 0..3 {
            metrics.read();
        }
        let text = text(&registry);
        assert!(text.contains("lone_energy_joules_total{rail=\"ane\"} 12.0"), "{text}");
        assert!(text.contains("lone_energy_watts{rail=\"ane\"}"), "{text}");
    }

    #[test]
    fn what_a_request_used_is_shown_by_token_and_absent_before_the_first() {
        let mut registry = Registry::with_prefix("lone");
        let metrics = metrics(&mut registry);
        let before = text(&registry);
        assert!(!before.contains("ane_bytes{") && !before.contains("per_token{"), "{before}");
        let (begin, end) = (metrics.meter.mark().unwrap(), metrics.meter.mark().unwrap());
        metrics.answered(&metrics.meter.between(&begin, &end), 2);
        let text = text(&registry);
        assert!(text.contains("lone_last_request_ane_bytes{direction=\"read\"} 400.0"), "{text}");
        assert!(text.contains("lone_energy_joules_per_token{rail=\"ane\"} 2.0"), "{text}");
    }
}
