//! What steps cost, for those who ask.

use std::time::{Duration, Instant};

use crate::plan::Plan;
use crate::steps::{Context, Step};

/// The cost of one step over all passes so far.
#[derive(Debug, Clone)]
pub struct StepProfile {
    /// Its kind, such as `projection`.
    pub kind: &'static str,
    /// The line of the plan.
    pub step: String,
    /// Bytes of weights, caches and ports that a pass reads or writes at most.
    pub bytes: usize,
    /// How often it ran.
    pub passes: u64,
    /// How long that took.
    pub time: Duration,
}

/// Times of the steps of one plan.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    times: Vec<Duration>,
    passes: u64,
}

impl Profile {
    pub(crate) fn new(plan: &Plan) -> Self {
        Profile { times: vec![Duration::ZERO; plan.steps.len()], passes: 0 }
    }

    pub(crate) fn run(&mut self, steps: &[Step], context: &mut Context<'_, '_, '_>) {
        self.passes += 1;
        for (step, time) in steps.iter().zip(&mut self.times) {
            let start = Instant::now();
            step.run(context);
            *time += start.elapsed();
        }
    }

    pub(crate) fn of(&self, plan: &Plan) -> Vec<StepProfile> {
        let profile = |(step, &time): (&Step, &Duration)| StepProfile {
            kind: step.name(),
            step: step.to_string(),
            bytes: step.outside_bytes(),
            passes: self.passes,
            time,
        };
        plan.steps.iter().zip(&self.times).map(profile).collect()
    }
}
