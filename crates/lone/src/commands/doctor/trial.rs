//! One backend, tried: does it load, does it compute what it should, how fast.

use std::time::Instant;

use lone_bundle::Role;
use lone_energy::{EnergyReport, EnergyWatch};
use lone_engine::{LoadOptions, Runtime, SessionOptions};
use lone_mil::Backend;
use lone_verify::{Candidate, Drift, likeliest};
use serde::Serialize;

use super::Patient;
use super::subject::Subject;
use crate::commands::Context;
use crate::failure::Failure;
use crate::quantity::rate;

/// The least mean cosine of logits that is close enough.
const LEAST_COSINE: f64 = 0.999;

/// What came of trying a backend.
#[derive(Debug, Serialize)]
pub(super) struct Trial {
    pub(super) backend: &'static str,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

/// How a trial ended.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum Outcome {
    /// It is not here.
    Absent { reason: String },
    /// It is here and does not run.
    Failed { reason: String },
    /// It ran.
    Ran(Measured),
}

/// What a backend that runs was seen to do.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    /// The first load, for which everything is made anew: what the backend compiles, and what the system makes of that for the device.
    pub(super) cold_load_seconds: f64,
    /// The next one, which finds whatever of that is kept.
    pub(super) warm_load_seconds: f64,
    pub(super) parity: Vec<Parity>,
    /// While decoding.
    pub(super) tokens_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) energy: Option<EnergyReport>,
}

/// How like the reference a kind of pass is.
#[derive(Debug, Serialize)]
pub(super) struct Parity {
    pub(super) role: Role,
    /// Of logits, over all positions.
    pub(super) mean_cosine: f64,
    /// At how many positions the likeliest token is the same.
    pub(super) same: usize,
    pub(super) positions: usize,
    pub(super) passed: bool,
}

impl Trial {
    /// Tries `patient` with `subject`.
    ///
    /// # Errors
    /// [`Failure::Interrupted`]; whatever else goes wrong is the trial's outcome.
    pub(super) fn of(
        patient: Patient,
        subject: &Subject,
        decoded: usize,
        meter: Option<&mut EnergyWatch>,
        context: &Context,
    ) -> Result<Self, Failure> {
        let Patient { name, backend, cache: _held } = patient;
        let outcome = match backend {
            Err(reason) => Outcome::Absent { reason },
            Ok(backend) => match measure(backend.as_ref(), subject, decoded, meter, context) {
                Ok(measured) => Outcome::Ran(measured),
                Err(failure) => Outcome::Failed { reason: reason(failure)? },
            },
        };
        Ok(Trial { backend: name, outcome })
    }

    /// Whether nothing speaks against it; what is not here does not.
    pub(super) fn passed(&self) -> bool {
        match &self.outcome {
            Outcome::Absent { .. } => true,
            Outcome::Failed { .. } => false,
            Outcome::Ran(measured) => measured.parity.iter().all(|parity| parity.passed),
        }
    }
}

/// Why something did not work, in a line.
///
/// # Errors
/// `failure` itself, if it ends the examination.
pub(super) fn reason(failure: Failure) -> Result<String, Failure> {
    let reason = match failure {
        Failure::User(error) | Failure::Usage(error) => error.message,
        Failure::Internal(error) => format!("{error:#}"),
        ended @ (Failure::Interrupted(_) | Failure::OutputClosed | Failure::OutputFailed(_)) => {
            return Err(ended);
        }
    };
    // Core ML's may have several, which would end a row of the report.
    Ok(reason.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn measure(
    backend: &dyn Backend,
    subject: &Subject,
    decoded: usize,
    meter: Option<&mut EnergyWatch>,
    context: &Context,
) -> Result<Measured, Failure> {
    let load = || -> Result<(Runtime, f64), Failure> {
        let start = Instant::now();
        let runtime = Runtime::load(&subject.dir, backend, &LoadOptions::default())?;
        Ok((runtime, start.elapsed().as_secs_f64()))
    };
    let (cold, cold_load_seconds) = load()?;
    drop(cold);
    let (mut runtime, warm_load_seconds) = load()?;
    let mut parity = Vec::new();
    for role in subject.roles() {
        if context.interrupt.is_raised() {
            return Err(Failure::Interrupted("the examination is not complete".into()));
        }
        parity.push(compare(&mut runtime, role, subject)?);
    }
    let (tokens_per_second, energy) = decode(&mut runtime, subject, decoded, meter)?;
    Ok(Measured { cold_load_seconds, warm_load_seconds, parity, tokens_per_second, energy })
}

fn compare(runtime: &mut Runtime, role: Role, subject: &Subject) -> Result<Parity, Failure> {
    let mut candidate = Candidate::new(runtime, role)?;
    candidate.read(&subject.tokens, &|_| true, &mut ())?;
    let drift = Drift::between(&subject.expected, &candidate.into_record());
    let mean_cosine = drift.logits.mean;
    Ok(Parity {
        role,
        mean_cosine,
        same: drift.argmax.same,
        positions: drift.argmax.positions,
        passed: mean_cosine >= LEAST_COSINE,
    })
}

/// Reads the tokens and decodes up to `count` more, as many as the context holds.
fn decode(
    runtime: &mut Runtime,
    subject: &Subject,
    count: usize,
    mut meter: Option<&mut EnergyWatch>,
) -> Result<(f64, Option<EnergyReport>), Failure> {
    let mut session = runtime.session(&SessionOptions { snapshots: 0, ..SessionOptions::default() })?;
    session.extend(runtime, &subject.tokens)?;
    let count = count.min(session.remaining());
    // A meter that fails leaves the speed, which does not need it.
    let mark = meter.as_mut().and_then(|meter| meter.mark().ok());
    let start = Instant::now();
    for _ in 0..count {
        let logits = session.logits().expect("tokens were read to their end");
        let next = likeliest(logits, 1)[0].id;
        session.extend(runtime, &[next])?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let energy = meter.zip(mark).and_then(|(meter, from)| {
        let to = meter.mark().ok()?;
        meter.measured(&from, &to)
    });
    let energy = energy.map(|energy| EnergyReport::of(&energy, count));
    Ok((rate(count as f64, seconds), energy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_unless_it_ends_the_examination() {
        let refusal = Failure::user("Core ML cannot load it: no engine\n  at line 7\n");
        assert_eq!(reason(refusal).unwrap(), "Core ML cannot load it: no engine at line 7");
        assert!(matches!(reason(Failure::Interrupted(String::new())), Err(Failure::Interrupted(_))));
    }
}
