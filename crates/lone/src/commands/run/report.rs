//! What an answer was and what it cost, for people and for programs.

use lone_energy::Energy;
use lone_engine::Generation;
use serde::Serialize;

use crate::commands::cost::{PhaseReport, SpecReport, finish_reason};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<SpecReport>,
    /// The seed that makes the same choices again.
    seed: u64,
    #[serde(flatten)]
    setting: Setting,
}

impl Report {
    pub(super) fn new(
        setting: Setting,
        generation: &Generation,
        text: Option<String>,
        speculates: bool,
        energy: [Option<Energy>; 2],
    ) -> Self {
        let stats = generation.stats();
        let [prefill, decode] = PhaseReport::of_both(&stats, energy);
        Report {
            text,
            token_ids: generation.token_ids().to_vec(),
            finish_reason: finish_reason(generation),
            stats: StatsReport {
                prefill,
                decode,
                spec: speculates.then(|| SpecReport::of(&stats)),
                seed: generation.seed(),
                setting,
            },
        }
    }

    /// Both phases in a line, and what guessing came to.
    pub(super) fn line(&self) -> String {
        let StatsReport { prefill, decode, spec, .. } = &self.stats;
        let spec = spec.as_ref().map_or_else(String::new, |spec| format!(" · {}", spec.line()));
        format!("prefill {} · decode {}{spec}", prefill.line(), decode.line())
    }
}
