//! What the answers to a request cost, for `usage`, `timings` and the log.

use lone_energy::{Energy, EnergyReport};
use lone_engine::{Ended, Event, News, Phase, Request, Stats};

use crate::reply::{CompletionTokensDetails, PromptTokensDetails, Timings, Usage};

/// The cost of one request's answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Tokens of all prompts; of one that several answers share, once.
    prompt_tokens: usize,
    /// Those of them that a session held already.
    cached_tokens: usize,
    /// Of all answers so far.
    answer_tokens: usize,
    /// Of all answers, prompts that repeat included.
    stats: Stats,
    /// For each answer, whether it shares its prompt with the answer before.
    repeats: Vec<bool>,
    /// Where there is a meter.
    energy: Option<EnergyReport>,
}

impl Tally {
    /// Of answers still to come, as many to each prompt.
    pub(crate) fn of(requests: &[Request], answers_per_prompt: usize) -> Self {
        let repeats: Vec<bool> =
            (0..requests.len()).map(|index| !index.is_multiple_of(answers_per_prompt)).collect();
        let different = requests.iter().zip(&repeats).filter(|(_, repeats)| !**repeats);
        Tally {
            prompt_tokens: different.map(|(request, _)| request.prompt.len()).sum(),
            repeats,
            ..Tally::default()
        }
    }

    /// Counts what answer number `index` brings.
    pub(crate) fn hear(&mut self, index: usize, news: &News) {
        match news {
            News::Event(Event::Token { .. }) => self.answer_tokens += 1,
            News::Ended(ended) => self.end(index, ended),
            _ => {}
        }
    }

    fn end(&mut self, index: usize, ended: &Ended) {
        if !self.repeats[index] {
            self.cached_tokens += ended.stats.reused_tokens;
        }
        self.stats += ended.stats;
    }

    /// Tokens of all answers so far.
    pub(crate) fn answer_tokens(&self) -> usize {
        self.answer_tokens
    }

    /// Notes what the machine used meanwhile.
    pub(crate) fn used(&mut self, energy: &Energy) {
        self.energy = Some(EnergyReport::of(energy, self.answer_tokens));
    }

    /// The count of tokens, of which so many were reasoning.
    pub(crate) fn usage(&self, reasoning_tokens: usize) -> Usage {
        Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.answer_tokens,
            total_tokens: self.prompt_tokens + self.answer_tokens,
            prompt_tokens_details: PromptTokensDetails { cached_tokens: self.cached_tokens },
            completion_tokens_details: CompletionTokensDetails { reasoning_tokens },
        }
    }

    pub(crate) fn timings(&self) -> Timings {
        let Stats { prefill, decode, speculated, .. } = self.stats;
        let (prompt, predicted) = (Rate::of(&prefill), Rate::of(&decode));
        Timings {
            cache_n: self.cached_tokens,
            prompt_n: prefill.tokens,
            prompt_ms: prompt.milliseconds,
            prompt_per_token_ms: prompt.milliseconds_per_token,
            prompt_per_second: prefill.tokens_per_second(),
            predicted_n: decode.tokens,
            predicted_ms: predicted.milliseconds,
            predicted_per_token_ms: predicted.milliseconds_per_token,
            predicted_per_second: decode.tokens_per_second(),
            predicted_passes: decode.passes,
            predicted_per_pass: self.stats.tokens_per_pass(),
            draft_n: speculated.drafted,
            draft_n_accepted: speculated.accepted,
            draft_passes: speculated.passes,
            energy: self.energy.clone(),
        }
    }

    /// One line in the log, without a word of what was said.
    pub(crate) fn log(&self, missing: usize) {
        tracing::info!(
            prompt_tokens = self.prompt_tokens,
            cached_tokens = self.cached_tokens,
            answer_tokens = self.answer_tokens,
            prefill_seconds = self.stats.prefill.time.as_secs_f64(),
            decode_seconds = self.stats.decode.time.as_secs_f64(),
            abandoned = missing,
            "answered"
        );
    }
}

struct Rate {
    milliseconds: f64,
    milliseconds_per_token: f64,
}

impl Rate {
    fn of(phase: &Phase) -> Self {
        let milliseconds = phase.time.as_secs_f64() * 1000.0;
        Rate { milliseconds, milliseconds_per_token: milliseconds / phase.tokens.max(1) as f64 }
    }
}
