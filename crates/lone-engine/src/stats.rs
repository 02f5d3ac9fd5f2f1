//! What an answer cost.

use std::ops::AddAssign;
use std::time::Duration;

use crate::Speculated;

/// One phase of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Phase {
    /// Tokens it produced or read.
    pub tokens: usize,
    /// Passes it took.
    pub passes: usize,
    /// Time spent in them and in choosing tokens.
    pub time: Duration,
}

impl Phase {
    /// Its speed; 0 for a phase that took no time.
    pub fn tokens_per_second(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.tokens as f64 / self.time.as_secs_f64() }
    }
}

impl AddAssign for Phase {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.passes += other.passes;
        self.time += other.time;
    }
}

/// The cost of an answer. Prefill lasts until the first token is chosen, and pays for it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Tokens of the prompt that the session held already.
    pub reused_tokens: usize,
    /// The rest of the prompt.
    pub prefill: Phase,
    /// The answer from its second token on.
    pub decode: Phase,
    /// What of that was guessed and checked; nothing without a proposer.
    pub speculated: Speculated,
}

impl Stats {
    /// Tokens a decode pass has come to; 0 before the first.
    pub fn tokens_per_pass(&self) -> f64 {
        match self.decode.passes {
            0 => 0.0,
            passes => self.decode.tokens as f64 / passes as f64,
        }
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.reused_tokens += other.reused_tokens;
        self.prefill += other.prefill;
        self.decode += other.decode;
        self.speculated += other.speculated;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_tokens_by_time_and_nothing_is_not_infinitely_fast() {
        let phase = Phase { tokens: 30, passes: 1, time: Duration::from_millis(1500) };
        assert_eq!(phase.tokens_per_second(), 20.0);
        assert_eq!(Phase::default().tokens_per_second(), 0.0);
    }
}
