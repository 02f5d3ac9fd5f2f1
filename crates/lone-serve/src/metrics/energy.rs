//! What the server's machine uses, where there is a meter.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use lone_energy::{Energy, EnergyWatch, Mark};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Joules = Counter<f64, AtomicU64>;
type Number = Gauge<f64, AtomicU64>;

/// The numbers, and the meter they are read from when somebody asks for them.
#[derive(Debug)]
pub(super) struct EnergyMetrics {
    joules: Family<RailLabels, Joules>,
    watts: Family<RailLabels, Number>,
    active_watts: Family<RailLabels, Number>,
    joules_per_token: Family<RailLabels, Number>,
    meter: Mutex<Meter>,
}

#[derive(Debug)]
struct Meter {
    watch: EnergyWatch,
    last: Mark,
    /// Tokens computed until then.
    tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RailLabels {
    rail: String,
}

impl EnergyMetrics {
    /// Begins to count with `watch`; `None` if it does not tell any more.
    pub(super) fn register(mut watch: EnergyWatch, registry: &mut Registry) -> Option<Self> {
        let last = watch.mark().ok()?;
        let metrics = EnergyMetrics {
            joules: Family::default(),
            watts: Family::default(),
            active_watts: Family::default(),
            joules_per_token: Family::default(),
            meter: Mutex::new(Meter { watch, last, tokens: 0 }),
        };
        registry.register("energy_joules", "Joules the machine has used, by rail", metrics.joules.clone());
        let help = "Watts since these numbers were last read, by rail";
        registry.register("energy_watts", help, metrics.watts.clone());
        let help = "The same above what is drawn while nothing is computed";
        registry.register("energy_active_watts", help, metrics.active_watts.clone());
        let help = "Joules by token of answers that ended since these numbers were last read, by rail";
        registry.register("energy_joules_per_token", help, metrics.joules_per_token.clone());
        Some(metrics)
    }

    /// Reads the meter; `tokens` have been computed by now.
    pub(super) fn read(&self, tokens: u64) {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        // A meter that does not tell any more leaves the numbers as they were.
        let Ok(now) = meter.watch.mark() else { return };
        let energy = meter.watch.between(&meter.last, &now);
        self.add(&energy, tokens - meter.tokens);
        (meter.last, meter.tokens) = (now, tokens);
    }

    fn add(&self, energy: &Energy, tokens: u64) {
        for rail in &energy.rails {
            let labels = RailLabels { rail: rail.rail.to_string() };
            self.joules.get_or_create(&labels).inc_by(rail.joules);
            self.watts.get_or_create(&labels).set(energy.per_second(rail.joules));
            let active = energy.per_second(rail.active_joules(energy.seconds));
            self.active_watts.get_or_create(&labels).set(active);
            if tokens > 0 {
                self.joules_per_token.get_or_create(&labels).set(rail.joules / tokens as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lone_energy::{Counters, EnergyMeter, MeterError, Rail, RailCounter};
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
            Ok(Counters { rails, neural_engine: None })
        }
    }

    #[test]
    fn joules_add_up_from_reading_to_reading_and_are_divided_by_the_tokens_between() {
        let mut registry = Registry::with_prefix("lone");
        let watch = EnergyWatch::new(Box::new(Steps(0.0))).unwrap();
        let metrics = EnergyMetrics::register(watch, &mut registry).unwrap();
        metrics.read(8);
        metrics.read(10);
        metrics.read(10);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("lone_energy_joules_total{rail=\"ane\"} 12.0"), "{text}");
        assert!(
            text.contains("lone_energy_joules_per_token{rail=\"ane\"} 2.0"),
            "no tokens leave what was: {text}"
        );
        assert!(text.contains("lone_energy_watts{rail=\"ane\"}"), "{text}");
    }
}
