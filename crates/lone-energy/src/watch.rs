//! A meter in use: what was used between two moments, and what of it would have been used anyway.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Counters, EnergyMeter, MeterError, Rail, RailCounter, Traffic};

/// How long the idle level is measured.
const IDLE_TIME: Duration = Duration::from_millis(200);

/// A meter, and what its rails draw while nothing is computed.
pub struct EnergyWatch {
    meter: Box<dyn EnergyMeter>,
    /// Watts, in the order of the meter's rails.
    idle: Vec<f64>,
}

/// A moment to count from.
#[derive(Debug, Clone)]
pub struct Mark {
    at: Instant,
    counters: Counters,
}

/// What was used between two moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Energy {
    /// From the one to the other.
    pub seconds: f64,
    /// One a rail.
    pub rails: Vec<RailEnergy>,
    /// What the Neural Engine read and wrote, where that is counted.
    pub neural_engine: Option<Traffic>,
}

/// What a rail used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailEnergy {
    /// Which.
    pub rail: Rail,
    /// In all.
    pub joules: f64,
    /// What it draws while nothing is computed, in watts.
    pub idle_watts: f64,
}

impl EnergyWatch {
    /// Measures the idle level, which takes a fifth of a second: nothing should be computed meanwhile.
    ///
    /// # Errors
    /// As the meter has it.
    pub fn new(mut meter: Box<dyn EnergyMeter>) -> Result<Self, MeterError> {
        let (start, before) = (Instant::now(), meter.read()?);
        thread::sleep(IDLE_TIME);
        let (after, seconds) = (meter.read()?, start.elapsed().as_secs_f64());
        let watts = |(now, then): (&RailCounter, &RailCounter)| (now.joules - then.joules) / seconds;
        let idle = after.rails.iter().zip(&before.rails).map(watts).collect();
        Ok(EnergyWatch { meter, idle })
    }

    /// What the meter is called.
    pub fn meter(&self) -> &'static str {
        self.meter.name()
    }

    /// This moment.
    ///
    /// # Errors
    /// As the meter has it.
    pub fn mark(&mut self) -> Result<Mark, MeterError> {
        Ok(Mark { counters: self.meter.read()?, at: Instant::now() })
    }

    /// What was used between `from` and `to`.
    pub fn between(&self, from: &Mark, to: &Mark) -> Energy {
        let rails = to.counters.rails.iter().zip(&from.counters.rails).zip(&self.idle);
        let rails = rails.map(|((now, then), &idle_watts)| RailEnergy {
            rail: now.rail,
            joules: (now.joules - then.joules).max(0.0),
            idle_watts,
        });
        let traffic = to.counters.neural_engine.zip(from.counters.neural_engine);
        Energy {
            seconds: (to.at - from.at).as_secs_f64(),
            rails: rails.collect(),
            neural_engine: traffic.map(|(now, then)| Traffic {
                read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
                written_bytes: now.written_bytes.saturating_sub(then.written_bytes),
            }),
        }
    }

    /// What has been used since `from`.
    ///
    /// # Errors
    /// As the meter has it.
    pub fn since(&mut self, from: &Mark) -> Result<Energy, MeterError> {
        let now = self.mark()?;
        Ok(self.between(from, &now))
    }
}

impl std::fmt::Debug for EnergyWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnergyWatch").field("meter", &self.meter.name()).field("idle", &self.idle).finish()
    }
}

impl RailEnergy {
    /// What it used in `seconds` without what it would have used anyway; never less than nothing.
    pub fn active_joules(&self, seconds: f64) -> f64 {
        (self.joules - self.idle_watts * seconds).max(0.0)
    }
}

impl Energy {
    /// Of several stretches of time together; `None` of none.
    pub fn sum(parts: &[Energy]) -> Option<Energy> {
        let (first, others) = parts.split_first()?;
        let mut sum = first.clone();
        for part in others {
            sum.seconds += part.seconds;
            for (rail, more) in sum.rails.iter_mut().zip(&part.rails) {
                rail.joules += more.joules;
            }
            if let (Some(sum), Some(more)) = (&mut sum.neural_engine, part.neural_engine) {
                sum.read_bytes += more.read_bytes;
                sum.written_bytes += more.written_bytes;
            }
        }
        Some(sum)
    }

    /// Of all rails.
    pub fn joules(&self) -> f64 {
        self.rails.iter().map(|rail| rail.joules).sum()
    }

    /// The same without what would have been used anyway; never less than nothing.
    pub fn active_joules(&self) -> f64 {
        self.rails.iter().map(|rail| rail.active_joules(self.seconds)).sum()
    }

    /// Of all rails, on average; zero if no time passed.
    pub fn watts(&self) -> f64 {
        self.per_second(self.joules())
    }

    /// The same above the idle level.
    pub fn active_watts(&self) -> f64 {
        self.per_second(self.active_joules())
    }

    /// `joules` of this time as watts.
    pub fn per_second(&self, joules: f64) -> f64 {
        if self.seconds > 0.0 { joules / self.seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts so much more at each reading.
    struct Steps(f64, f64);

    impl EnergyMeter for Steps {
        fn name(&self) -> &'static str {
            "steps"
        }

        fn read(&mut self) -> Result<Counters, MeterError> {
            self.0 += self.1;
            let rails = vec![RailCounter { rail: Rail::Cpu, joules: self.0 }];
            Ok(Counters {
                rails,
                neural_engine: Some(Traffic { read_bytes: self.0 as u64, written_bytes: 7 }),
            })
        }
    }

    #[test]
    fn the_idle_level_is_what_was_used_at_first_and_what_follows_is_counted_from_the_mark() {
        let mut watch = EnergyWatch::new(Box::new(Steps(100.0, 3.0))).unwrap();
        let mark = watch.mark().unwrap();
        let energy = watch.since(&mark).unwrap();
        assert_eq!(energy.joules(), 3.0);
        assert_eq!(energy.neural_engine, Some(Traffic { read_bytes: 3, written_bytes: 0 }));
        // Three joules in at least the time that the idle level is measured.
        let idle = energy.rails[0].idle_watts;
        assert!(idle > 0.0 && idle <= 3.0 / IDLE_TIME.as_secs_f64(), "{idle}");
    }

    #[test]
    fn active_energy_leaves_out_what_is_used_anyway_and_is_never_negative() {
        let rail = |joules, idle_watts| RailEnergy { rail: Rail::Cpu, joules, idle_watts };
        let energy =
            Energy { seconds: 2.0, rails: vec![rail(10.0, 1.0), rail(1.0, 9.0)], neural_engine: None };
        assert_eq!((energy.joules(), energy.active_joules()), (11.0, 8.0));
        assert_eq!((energy.watts(), energy.active_watts()), (5.5, 4.0));
        let both = Energy::sum(&[energy.clone(), energy.clone()]).unwrap();
        assert_eq!((both.joules(), both.watts(), both.active_watts()), (22.0, 5.5, 4.0));
        assert_eq!(Energy { seconds: 0.0, ..energy }.watts(), 0.0);
    }
}
