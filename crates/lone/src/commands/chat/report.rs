//! What a turn was and what it cost.

use lone_energy::Energy;
use lone_engine::{Generation, Session, Stats};
use serde::Serialize;

use crate::commands::cost::{PhaseReport, SpecReport, finish_reason};
use crate::memory::Memory;
use crate::quantity::{Bytes, counted};

/// A turn, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct TurnReport {
    /// Without the token that ended it.
    text: String,
    /// With it.
    token_ids: Vec<u32>,
    finish_reason: &'static str,
    stats: TurnStats,
}

#[derive(Debug, Serialize)]
struct TurnStats {
    /// Tokens of the prompt that were in the caches already.
    reused_tokens: usize,
    /// Until the first token of the answer is chosen.
    prefill: PhaseReport,
    /// From then on; its tokens leave out that first one.
    decode: PhaseReport,
    /// If tokens were to be guessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<SpecReport>,
    ctx: ContextReport,
    memory: Memory,
    /// The seed that makes the same choices again.
    seed: u64,
}

#[derive(Debug, Serialize)]
struct ContextReport {
    used: usize,
    total: usize,
}

/// What all turns cost together, those taken back included.
#[derive(Debug, Default)]
pub(super) struct Totals {
    turns: usize,
    stats: Stats,
}

impl TurnReport {
    pub(super) fn new(
        generation: &Generation,
        text: String,
        session: &Session,
        speculates: bool,
        energy: [Option<Energy>; 2],
    ) -> Self {
        let stats = generation.stats();
        let [prefill, decode] = PhaseReport::of_both(&stats, energy);
        TurnReport {
            text,
            token_ids: generation.token_ids().to_vec(),
            finish_reason: finish_reason(generation),
            stats: TurnStats {
                reused_tokens: stats.reused_tokens,
                prefill,
                decode,
                spec: speculates.then(|| SpecReport::of(&stats)),
                ctx: ContextReport { used: session.position(), total: session.ctx() },
                memory: Memory::now(),
                seed: generation.seed(),
            },
        }
    }

    /// The block that follows an answer.
    pub(super) fn lines(&self) -> [String; 2] {
        let TurnStats { prefill, decode, spec, ctx, memory, .. } = &self.stats;
        let spec = spec.as_ref().map_or_else(String::new, |spec| format!(" · {}", spec.line()));
        let memory = memory.line().map_or_else(String::new, |line| format!(" · mem {line}"));
        [
            format!("prefill {} · decode {}{spec}", prefill.line(), decode.line()),
            format!("ctx {}{memory}", ctx.line()),
        ]
    }
}

impl ContextReport {
    /// As `17/128 (13.3%)`.
    fn line(&self) -> String {
        let percent = 100.0 * self.used as f64 / self.total as f64;
        format!("{}/{} ({percent:.1}%)", self.used, self.total)
    }
}

impl Totals {
    /// Counts another turn.
    pub(super) fn add(&mut self, stats: Stats) {
        self.turns += 1;
        self.stats += stats;
    }

    /// What `/stats` shows.
    pub(super) fn lines(&self, session: &Session, speculates: bool) -> Vec<String> {
        let Stats { reused_tokens, prefill, decode, .. } = &self.stats;
        let ctx = ContextReport { used: session.position(), total: session.ctx() };
        let caches = Bytes(session.cache_bytes());
        let ways_back = Bytes(session.snapshot_bytes());
        let mut lines = vec![
            format!(
                "{}, {} not computed again",
                counted(self.turns, "turn"),
                counted(*reused_tokens, "token")
            ),
            format!(
                "prefill {} · decode {}",
                PhaseReport::of(prefill).line(),
                PhaseReport::of(decode).line()
            ),
            format!("ctx {} · caches {caches}, and {ways_back} to go back by", ctx.line()),
        ];
        if speculates {
            lines.insert(2, SpecReport::of(&self.stats).line());
        }
        lines.extend(Memory::now().line().map(|line| format!("mem {line}")));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_is_shown_as_a_share() {
        assert_eq!(ContextReport { used: 17, total: 128 }.line(), "17/128 (13.3%)");
    }
}
