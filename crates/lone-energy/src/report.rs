//! What was used, in the units people ask for.

use serde::Serialize;

use crate::Energy;

/// What some tokens cost, for people and, as JSON, for programs. What is not counted is left out.
#[derive(Debug, Clone, Serialize)]
pub struct EnergyReport {
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
    pub fn of(energy: &Energy, tokens: usize) -> Self {
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

    /// As `5.20 W, 3.10 W above idle, 0.092 J/token, ANE 812.0 MB read, 3.1 MB written`, as far as it is known. Of several rails each is
    /// told: `5.20 W (ane 0.70, cpu 4.50)`.
    pub fn line(&self) -> String {
        let per_token = self.joules_per_token.map(|joules| format!(", {joules:.3} J/token"));
        let traffic = self.ane_read_bytes.zip(self.ane_written_bytes).map(|(read, written)| {
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            format!(", ANE {:.1} MB read, {:.1} MB written", megabytes(read), megabytes(written))
        });
        let EnergyReport { watts, active_watts, .. } = self;
        let (per_token, traffic) = (per_token.unwrap_or_default(), traffic.unwrap_or_default());
        let rails = self.by_rail(|rail| rail.watts);
        let active_rails = self.by_rail(|rail| (rail.watts - rail.idle_watts).max(0.0));
        format!("{watts:.2} W{rails}, {active_watts:.2} W above idle{active_rails}{per_token}{traffic}")
    }

    /// As ` (ane 0.70, cpu 4.50)`; nothing of a single rail, which is all there is.
    fn by_rail(&self, watts: impl Fn(&RailReport) -> f64) -> String {
        if self.rails.len() < 2 {
            return String::new();
        }
        let rails = self.rails.iter().map(|rail| format!("{} {:.2}", rail.rail, watts(rail)));
        format!(" ({})", rails.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rail, RailEnergy, Traffic};

    #[test]
    fn energy_is_shown_by_watts_above_idle_and_by_token() {
        let rails = vec![
            RailEnergy { rail: Rail::NeuralEngine, joules: 6.0, idle_watts: 0.0 },
            RailEnergy { rail: Rail::Cpu, joules: 4.0, idle_watts: 1.5 },
        ];
        let energy = Energy { seconds: 2.0, rails, neural_engine: None };
        let report = EnergyReport::of(&energy, 20);
        assert_eq!(
            report.line(),
            "5.00 W (ane 3.00, cpu 2.00), 3.50 W above idle (ane 3.00, cpu 0.50), 0.500 J/token"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["rails"][1]["rail"], &json["rails"][1]["watts"]), (&"cpu".into(), &2.0.into()));
        assert_eq!(json.get("ane_read_bytes"), None);
        let energy = Energy { rails: vec![energy.rails[1]], ..energy };
        assert_eq!(EnergyReport::of(&energy, 0).line(), "2.00 W, 0.50 W above idle");
        let traffic = Traffic { read_bytes: 812_000_000, written_bytes: 3_100_000 };
        let energy = Energy { neural_engine: Some(traffic), ..energy };
        let expected = "2.00 W, 0.50 W above idle, ANE 812.0 MB read, 3.1 MB written";
        assert_eq!(EnergyReport::of(&energy, 0).line(), expected);
    }
}
