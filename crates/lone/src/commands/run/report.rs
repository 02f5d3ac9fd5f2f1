//! What an answer was and what it cost, for people and for programs.

use lone_engine::{FinishReason, Generation, Phase};
use serde::Serialize;

use crate::quantity::{Seconds, counted, rate};

/// What made the answer.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    pub(super) model: String,
    pub(super) bundle: String,
    pub(super) backend: &'static str,
    pub(super) ctx: usize,
    pub(super) load_seconds: f64,
}

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Without the token that ended it; `null` for a model without a tokenizer.
    text: Option<String>,
    /// With the token that ended it.
    token_ids: Vec<u32>,
    finish_reason: &'static str,
    stats: StatsReport,
}

#[derive(Debug, Serialize)]
struct StatsReport {
    /// Until the first token of the answer is chosen.
    prefill: PhaseReport,
    /// From then on; its tokens leave out that first one.
    decode: PhaseReport,
    /// The seed that makes the same choices again.
    seed: u64,
    #[serde(flatten)]
    setting: Setting,
}

#[derive(Debug, Serialize)]
struct PhaseReport {
    tokens: usize,
    passes: usize,
    seconds: f64,
    tokens_per_second: f64,
}

impl Report {
    pub(super) fn new(setting: Setting, generation: &Generation, text: Option<String>) -> Self {
        let stats = generation.stats();
        Report {
            text,
            token_ids: generation.token_ids().to_vec(),
            finish_reason: match generation.finish_reason() {
                Some(FinishReason::Stop) => "stop",
                Some(FinishReason::Length) => "length",
                Some(FinishReason::Cancelled) | None => "interrupted",
            },
            stats: StatsReport {
                prefill: PhaseReport::of(&stats.prefill),
                decode: PhaseReport::of(&stats.decode),
                seed: generation.seed(),
                setting,
            },
        }
    }

    /// Both phases in a line.
    pub(super) fn line(&self) -> String {
        format!("prefill {} · decode {}", self.stats.prefill.line(), self.stats.decode.line())
    }
}

impl PhaseReport {
    fn of(phase: &Phase) -> Self {
        let seconds = phase.time.as_secs_f64();
        PhaseReport {
            tokens: phase.tokens,
            passes: phase.passes,
            seconds,
            tokens_per_second: rate(phase.tokens as f64, seconds),
        }
    }

    fn line(&self) -> String {
        let tokens = counted(self.tokens, "token");
        format!("{tokens} in {}, {:.1} tok/s", Seconds(self.seconds), self.tokens_per_second)
    }
}
