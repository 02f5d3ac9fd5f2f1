//! What has been said already, and what that takes from its logits.

use std::collections::HashMap;

use crate::Sampling;

/// How often each token has occurred.
#[derive(Debug, Default)]
pub(crate) struct Occurrences {
    /// Times in the answer; 0 for those only the prompt has.
    in_answer: HashMap<u32, u32>,
}

impl Occurrences {
    pub(crate) fn read_prompt(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.in_answer.entry(token).or_insert(0);
        }
    }

    pub(crate) fn say(&mut self, token: u32) {
        *self.in_answer.entry(token).or_insert(0) += 1;
    }

    /// Applies the penalties of `sampling` to `logits (V)`.
    pub(crate) fn penalize(&self, sampling: &Sampling, logits: &mut [f32]) {
        for (&token, &times) in &self.in_answer {
            let logit = &mut logits[token as usize];
            if *logit > 0.0 {
                *logit /= sampling.repetition_penalty;
            } else {
                *logit *= sampling.repetition_penalty;
            }
            if times > 0 {
                *logit -= sampling.presence_penalty + sampling.frequency_penalty * times as f32;
            }
        }
    }
}
