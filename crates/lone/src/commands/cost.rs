//! What an answer cost, phase by phase, for people and for programs.

use lone_energy::{Energy, EnergyReport};
use lone_engine::{FinishReason, Generation, Phase, Speculated, Stats};
use serde::Serialize;

use crate::quantity::{Seconds, counted, rate};

/// One phase.
#[derive(Debug, Serialize)]
pub(super) struct PhaseReport {
    tokens: usize,
    passes: usize,
    seconds: f64,
    tokens_per_second: f64,
    /// If there is a meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<EnergyReport>,
}

/// What guessing tokens came to, if it was asked for.
#[derive(Debug, Serialize)]
pub(super) struct SpecReport {
    drafted: usize,
    accepted: usize,
    /// Those of the decode passes that checked drafts.
    passes: usize,
    /// Of all decode passes.
    tokens_per_pass: f64,
}

/// Why an answer ended, as programs read it.
pub(super) fn finish_reason(generation: &Generation) -> &'static str {
    match generation.finish_reason() {
        Some(FinishReason::Stop) => "stop",
        Some(FinishReason::Length) => "length",
        Some(FinishReason::Cancelled) | None => "interrupted",
    }
}

impl PhaseReport {
    pub(super) fn of(phase: &Phase) -> Self {
        let seconds = phase.time.as_secs_f64();
        PhaseReport {
            tokens: phase.tokens,
            passes: phase.passes,
            seconds,
            tokens_per_second: rate(phase.tokens as f64, seconds),
            energy: None,
        }
    }

    /// Prefill and decode of an answer, and what each used if that is known.
    pub(super) fn of_both(stats: &Stats, energy: [Option<Energy>; 2]) -> [Self; 2] {
        let mut reports = [&stats.prefill, &stats.decode].map(PhaseReport::of);
        for (report, energy) in reports.iter_mut().zip(energy) {
            report.energy = energy.map(|energy| EnergyReport::of(&energy, report.tokens));
        }
        reports
    }

    /// As `7 tokens in 0.123 s, 56.9 tok/s`, and what that used.
    pub(super) fn line(&self) -> String {
        let tokens = counted(self.tokens, "token");
        let energy = self.energy.as_ref().map(|energy| format!(", {}", energy.line()));
        let (seconds, rate) = (Seconds(self.seconds), self.tokens_per_second);
        format!("{tokens} in {seconds}, {rate:.1} tok/s{}", energy.unwrap_or_default())
    }
}

impl SpecReport {
    pub(super) fn of(stats: &Stats) -> Self {
        let Speculated { drafted, accepted, passes } = stats.speculated;
        SpecReport { drafted, accepted, passes, tokens_per_pass: stats.tokens_per_pass() }
    }

    /// As `7 of 9 drafts accepted, 2.3 tokens a pass`.
    pub(super) fn line(&self) -> String {
        format!(
            "{} of {} accepted, {:.1} tokens a pass",
            self.accepted,
            counted(self.drafted, "draft"),
            self.tokens_per_pass
        )
    }
}
