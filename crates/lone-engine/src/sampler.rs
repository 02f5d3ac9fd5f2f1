//! Chooses tokens from logits.
//!
//! Order: grammar, bias, repetition penalty, presence and frequency penalties, temperature, top-k, top-p, min-p, draw; that is
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

use crate::{Grammar, GrammarError, RequestError, RunError, Sampling};

/// Chooses the tokens of one answer.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    seed: u64,
    random: ChaCha8Rng,
    occurrences: Occurrences,
    grammar: Option<Grammar>,
    /// What the grammar has against a token that was said.
    objection: Option<GrammarError>,
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
            grammar: None,
            objection: None,
            adjusted: Vec::new(),
            ranked: Vec::new(),
            distribution: Distribution::default(),
            sampling,
        })
    }

    /// The same, choosing only what `grammar`, if there is one, allows.
    #[must_use]
    pub fn within(self, grammar: Option<Grammar>) -> Self {
        Sampler { grammar, ..self }
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
        if let Some(grammar) = &mut self.grammar {
            self.objection = grammar.accept(token).err();
        }
    }

    /// What the next token is drawn from, given its `logits (V)`. A token is ruled out by a logit of minus infinity.
    ///
    /// # Errors
    /// [`RunError::Logits`] if one is NaN or infinite, or all are minus infinity; [`RunError::Grammar`] if a token was
    /// said that the grammar does not allow, or is too much work to follow.
    pub fn distribution(&mut self, logits: &[f32]) -> Result<&Distribution, RunError> {
        if let Some(objection) = &self.objection {
            return Err(objection.clone().into());
        }
        let Sampler { sampling, adjusted, grammar, .. } = self;
        let mut seen = logits;
        if grammar.is_some() || sampling.has_penalties() || !sampling.logit_bias.is_empty() {
            adjusted.clear();
            adjusted.extend_from_slice(logits);
            if let Some(grammar) = grammar {
                grammar.restrict(adjusted)?;
            }
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
