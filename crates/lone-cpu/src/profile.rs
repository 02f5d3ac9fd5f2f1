//! What steps cost, for those who ask.

use std::time::{Duration, Instant};

use lone_mil::StepProfile;

use crate::plan::Plan;
use crate::steps::{Context, Step};

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

    /// The steps of `plan`, with their costs if they were timed.
    pub(crate) fn of(plan: &Plan, timed: Option<&Self>) -> Vec<StepProfile> {
        let profile = |(index, step): (usize, &Step)| StepProfile {
            kind: step.name(),
            step: step.to_string(),
            weight_bytes: step.weight_bytes(),
            multiply_adds: step.multiply_adds(),
            bytes: step.outside_bytes(),
            passes: timed.map_or(0, |profile| profile.passes),
            time: timed.map_or(Duration::ZERO, |profile| profile.times[index]),
        };
        plan.steps.iter().enumerate().map(profile).collect()
    }
}
