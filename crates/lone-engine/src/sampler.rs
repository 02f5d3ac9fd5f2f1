//! Chooses tokens from logits.
//!
//! Order: bias, repetition penalty, presence and frequency penalties, temperature, top-k, top-p, min-p, draw; that is
//! transformers' order. What is left after all filters is a [`Distribution`] anybody may look at, not only draw from.

mod distribution;
mod largest;
mod penalty;

use std::hash::{BuildHasher, RandomState};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use distribution::Distribution;
pub(crate) use largest::{Ranked, largest};
use penalty::Occurrences;

use crate::{RequestError, RunError, Sampling};

/// Chooses the tokens of one answer.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    seed: u64,
    random: ChaCha8Rng,
    occurrences: Occurrences,
    /// Logits after bias and penalties, `(V)`.
    adjusted: Vec<f32>,
    ranked: Vec<Ranked>,
    distribution: Distribution,
}

impl Sampler {
    /// A sampler in front of the first token.
    ///
    /// # Errors
    /// [`RequestError::Setting`] for a setting out of its range.
    pub fn new(sampling: Sampling, vocab_size: usize) -> Result<Self, RequestError> {
        sampling.check(vocab_size)?;
        // Every `RandomState` hashes differently, which is all the randomness an unasked-for seed needs.
        // 53 bits of it, so that readers of JSON that know only doubles read it as it is.
        let seed = sampling.seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 11);
        Ok(Sampler {
            seed,
            random: ChaCha8Rng::seed_from_u64(seed),
            occurrences: Occurrences::default(),
            adjusted: Vec::new(),
            ranked: Vec::new(),
            distribution: Distribution::default(),
            sampling,
        })
    }

    /// The seed that makes it choose as it does, asked for or not.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Counts `tokens` as occurred, for the repetition penalty.
    pub fn read_prompt(&mut self, tokens: &[u32]) {
        if self.sampling.has_penalties() {
            self.occurrences.read_prompt(tokens);
        }
    }

    /// Counts `token` as said, for all penalties.
    pub fn say(&mut self, token: u32) {
        if self.sampling.has_penalties() {
            self.occurrences.say(token);
        }
    }

    /// What the next token is drawn from, given its `logits (V)`. A token is ruled out by a logit of minus infinity.
    ///
    /// # Errors
    /// [`RunError::Logits`] if one is NaN or infinite, or all are minus infinity.
    pub fn distribution(&mut self, logits: &[f32]) -> Result<&Distribution, RunError> {
        let Sampler { sampling, adjusted, .. } = self;
        let mut seen = logits;
        if sampling.has_penalties() || !sampling.logit_bias.is_empty() {
            adjusted.clear();
            adjusted.extend_from_slice(logits);
            for (&id, bias) in &sampling.logit_bias {
                adjusted[id as usize] += bias;
            }
            self.occurrences.penalize(sampling, adjusted);
            seen = adjusted;
        }
        self.distribution.filter(seen, sampling, &mut self.ranked)?;
        Ok(&self.distribution)
    }

    /// Draws the next token, given its `logits (V)`, and counts it as said.
    ///
    /// # Errors
    /// As [`Sampler::distribution`].
    pub fn choose(&mut self, logits: &[f32]) -> Result<u32, RunError> {
        self.distribution(logits)?;
        let token = match self.distribution.len() {
            1 => self.distribution.draw(0.0),
            _ => self.distribution.draw(uniform(&mut self.random)),
        };
        self.say(token);
        Ok(token)
    }
}

/// A number in [0, 1), of 53 random bits.
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
