//! A meter in use: what was used between two moments, and what of it would have been used anyway.
//!
//! Some systems publish their counters every millisecond, some every two seconds. How often is seen while the idle level is measured, which
//! is counted from publication to publication; what lasts too short for the meter is not measured rather than measured wrongly.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Counters, EnergyMeter, MeterError, Rail, RailCounter, Traffic};

/// How long the idle level is measured at least, and how long the second publication is waited for.
const IDLE_TIME: Duration = Duration::from_millis(200);
const SHORT_PATIENCE: Duration = Duration::from_millis(500);
const LONG_PATIENCE: Duration = Duration::from_secs(6);
/// How often counters are looked at meanwhile.
const GLANCES: Duration = Duration::from_millis(2);
/// As many publications must lie between two moments: up to one is counted too many, or too few.
const FEWEST_PUBLICATIONS: f64 = 4.0;

/// A meter, and what its rails draw while nothing is computed.
pub struct EnergyWatch {
    meter: Box<dyn EnergyMeter>,
    idle: Idle,
}

/// What was seen while nothing was computed.
#[derive(Debug)]
struct Idle {
    /// The counters at first, by which those that never move are known.
    first: Counters,
    /// Watts, in the order of the meter's rails.
    watts: Vec<f64>,
    /// From one publication to the next.
    cadence_seconds: f64,
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
    /// As the meter has it; [`MeterError::Still`] for one that publishes too seldom to be waited for.
    pub fn new(meter: Box<dyn EnergyMeter>) -> Result<Self, MeterError> {
        Self::within(SHORT_PATIENCE, meter)
    }

    /// The same, and waits for a meter that publishes seldom, which takes some seconds.
    ///
    /// # Errors
    /// As [`EnergyWatch::new`].
    pub fn patient(meter: Box<dyn EnergyMeter>) -> Result<Self, MeterError> {
        Self::within(LONG_PATIENCE, meter)
    }

    fn within(patience: Duration, mut meter: Box<dyn EnergyMeter>) -> Result<Self, MeterError> {
        let idle = Idle::measure(meter.as_mut(), patience)?;
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

    /// What was used between `from` and `to`, as far as the meter had published it. Rails that have not moved since they were first seen
    /// are left out.
    pub fn between(&self, from: &Mark, to: &Mark) -> Energy {
        let rails = to.counters.rails.iter().zip(&from.counters.rails);
        let rails = rails.zip(self.idle.first.rails.iter().zip(&self.idle.watts));
        let rails = rails.filter(|((now, _), (first, _))| now.joules > first.joules);
        let rails = rails.map(|((now, then), (_, &idle_watts))| RailEnergy {
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

    /// The same, if that was long enough for this meter, and anything moved.
    pub fn measured(&self, from: &Mark, to: &Mark) -> Option<Energy> {
        let energy = self.between(from, to);
        let is_long = energy.seconds >= FEWEST_PUBLICATIONS * self.idle.cadence_seconds;
        (is_long && energy.joules() > 0.0).then_some(energy)
    }
}

impl Idle {
    /// Looks at `meter` until two publications and [`IDLE_TIME`] have passed, `patience` at most.
    fn measure(meter: &mut dyn EnergyMeter, patience: Duration) -> Result<Self, MeterError> {
        let (start, first) = (Instant::now(), meter.read()?);
        let mut last = first.clone();
        // The publications seen: when the first and the last were, and how many came after the first.
        let mut begun: Option<(Instant, Counters)> = None;
        let (mut ended, mut count) = (start, 0u32);
        while start.elapsed() < IDLE_TIME || count == 0 {
            if start.elapsed() > patience {
                return Err(MeterError::Still { meter: meter.name(), seconds: patience.as_secs_f64() });
            }
            thread::sleep(GLANCES);
            let (now, counters) = (Instant::now(), meter.read()?);
            if counters.rails != last.rails {
                match begun {
                    None => begun = Some((now, counters.clone())),
                    Some(_) => count += 1,
                }
                (ended, last) = (now, counters);
            }
        }
        let (began, before) = begun.expect("it came before those that were counted");
        let seconds = (ended - began).as_secs_f64();
        let watts = |(now, then): (&RailCounter, &RailCounter)| (now.joules - then.joules) / seconds;
        let watts = last.rails.iter().zip(&before.rails).map(watts).collect();
        Ok(Idle { first, watts, cadence_seconds: seconds / f64::from(count) })
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
            for more in &part.rails {
                match sum.rails.iter_mut().find(|rail| rail.rail == more.rail) {
                    Some(rail) => rail.joules += more.joules,
                    None => sum.rails.push(*more),
                }
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

    /// A meter that publishes so often, three joules of the CPU and seven bytes each time. Its memory's counter stands still.
    struct Steps {
        start: Instant,
        every: Duration,
    }

    impl EnergyMeter for Steps {
        fn name(&self) -> &'static str {
            "steps"
        }

        fn read(&mut self) -> Result<Counters, MeterError> {
            let steps = (self.start.elapsed().as_nanos() / self.every.as_nanos()) as u64;
            let rail = |rail, joules| RailCounter { rail, joules };
            Ok(Counters {
                rails: vec![rail(Rail::Cpu, 100.0 + 3.0 * steps as f64), rail(Rail::Dram, 50.0)],
                neural_engine: Some(Traffic { read_bytes: 7 * steps, written_bytes: 9 }),
            })
        }
    }

    fn steps(milliseconds: u64) -> Box<dyn EnergyMeter> {
        Box::new(Steps { start: Instant::now(), every: Duration::from_millis(milliseconds) })
    }

    #[test]
    fn the_idle_level_is_counted_from_publication_to_publication_however_seldom_they_are() {
        for every in [5, 80] {
            let watch = EnergyWatch::new(steps(every)).unwrap();
            // A sleep may last longer than it should: then several publications are seen as one.
            let [cpu, memory] = watch.idle.watts[..] else { panic!("{watch:?}") };
            let expected = 3000.0 / every as f64;
            assert!((expected / 3.0..expected * 3.0).contains(&cpu), "{cpu} W, not {expected}");
            assert_eq!(memory, 0.0);
            assert!(watch.idle.cadence_seconds >= 0.0005 * every as f64, "{watch:?}");
        }
    }

    #[test]
    fn what_is_too_short_for_the_meter_is_not_measured_and_what_never_moves_is_left_out() {
        let (watch, start) = (EnergyWatch::new(steps(20)).unwrap(), Instant::now());
        let mark = |milliseconds: u64, joules: f64| Mark {
            at: start + Duration::from_millis(milliseconds),
            counters: Counters {
                rails: vec![
                    RailCounter { rail: Rail::Cpu, joules },
                    RailCounter { rail: Rail::Dram, joules: 50.0 },
                ],
                neural_engine: None,
            },
        };
        let long = (FEWEST_PUBLICATIONS * watch.idle.cadence_seconds * 1000.0) as u64 + 1;
        let energy = watch.measured(&mark(0, 1000.0), &mark(long, 1012.0)).unwrap();
        assert_eq!(energy.rails.iter().map(|rail| rail.rail).collect::<Vec<_>>(), [Rail::Cpu]);
        assert_eq!(energy.joules(), 12.0);
        assert_eq!(watch.measured(&mark(0, 1000.0), &mark(long / 2, 1012.0)), None, "too short");
        assert_eq!(watch.measured(&mark(0, 1000.0), &mark(long, 1000.0)), None, "nothing was published");
    }

    #[test]
    fn a_meter_that_stands_still_is_none() {
        let error = EnergyWatch::new(steps(3_600_000)).unwrap_err().to_string();
        assert_eq!(error, "the counters of steps moved less than twice in 0.5 s");
    }

    #[test]
    fn marks_are_counted_from() {
        let mut watch = EnergyWatch::new(steps(5)).unwrap();
        let from = watch.mark().unwrap();
        thread::sleep(Duration::from_millis(30));
        let to = watch.mark().unwrap();
        let energy = watch.between(&from, &to);
        assert!(energy.joules() >= 3.0 * 5.0 && energy.joules() % 3.0 == 0.0, "{energy:?}");
        let traffic = Traffic { read_bytes: 7 * (energy.joules() / 3.0) as u64, written_bytes: 0 };
        assert_eq!(energy.neural_engine, Some(traffic));
    }

    #[test]
    fn active_energy_leaves_out_what_is_used_anyway_and_is_never_negative() {
        let rail = |rail, joules, idle_watts| RailEnergy { rail, joules, idle_watts };
        let energy = Energy {
            seconds: 2.0,
            rails: vec![rail(Rail::Cpu, 10.0, 1.0), rail(Rail::Gpu, 1.0, 9.0)],
            neural_engine: None,
        };
        assert_eq!((energy.joules(), energy.active_joules()), (11.0, 8.0));
        assert_eq!((energy.watts(), energy.active_watts()), (5.5, 4.0));
        let both = Energy::sum(&[energy.clone(), energy.clone()]).unwrap();
        let other = Energy { rails: vec![rail(Rail::Dram, 1.0, 0.0)], ..energy.clone() };
        assert_eq!(Energy::sum(&[energy.clone(), other]).unwrap().joules(), 12.0, "rails differ");
        assert_eq!((both.joules(), both.watts(), both.active_watts()), (22.0, 5.5, 4.0));
        assert_eq!(Energy { seconds: 0.0, ..energy }.watts(), 0.0);
    }
}
