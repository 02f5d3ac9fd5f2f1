//! What a token is drawn from: the tokens that are left after all filters, and how likely each is.

use super::largest::{LANES, Ranked, largest};
use crate::{RunError, Sampling};

/// How many of the likeliest are looked at first when only their sum says how many are needed.
const FIRST_LOOK: usize = 64;

/// Tokens and their probabilities; at least one token, and none of probability 0 matters.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    ids: Vec<u32>,
    /// Relative to the likeliest token's, which is 1.
    weights: Vec<f32>,
    total: f64,
}

impl Distribution {
    /// How many tokens can be drawn.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Never; there is always a likeliest token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The tokens and their probabilities, in the order they are drawn from.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> {
        self.ids.iter().zip(&self.weights).map(|(&id, &weight)| (id, f64::from(weight) / self.total))
    }

    /// The probability of `token`; 0 if it is not among those left.
    pub fn probability(&self, token: u32) -> f64 {
        self.iter().find(|(id, _)| *id == token).map_or(0.0, |(_, probability)| probability)
    }

    /// The token that `uniform`, a number in [0, 1), falls on.
    pub fn draw(&self, uniform: f64) -> u32 {
        let mut rest = uniform * self.total;
        let mut last = self.ids[0];
        for (&id, &weight) in self.ids.iter().zip(&self.weights).filter(|(_, weight)| **weight > 0.0) {
            last = id;
            rest -= f64::from(weight);
            if rest < 0.0 {
                break;
            }
        }
        last
    }

    /// Becomes what `sampling`'s temperature and filters leave of `logits (V)`. `ranked` is scratch.
    pub(crate) fn filter(
        &mut self,
        logits: &[f32],
        sampling: &Sampling,
        ranked: &mut Vec<Ranked>,
    ) -> Result<(), RunError> {
        let max = checked_max(logits)?;
        if sampling.temperature == 0.0 {
            let likeliest = logits.iter().position(|&logit| logit == max).expect("the largest is among them");
            self.take(&[Ranked { value: max, id: likeliest as u32 }], |_| 1.0);
            return Ok(());
        }
        let weight = |logit: f32| ((logit - max) / sampling.temperature).exp();
        let top_p = f64::from(sampling.top_p);
        if (1..logits.len()).contains(&sampling.top_k) {
            largest(logits, sampling.top_k, ranked);
            self.take(ranked, weight);
            self.keep_until(top_p * self.total);
        } else {
            self.take_all(logits, weight);
            if top_p < 1.0 {
                self.take_until(top_p * self.total, logits, ranked, weight);
            }
        }
        if sampling.min_p > 0.0 {
            self.keep_at_least(sampling.min_p);
        }
        Ok(())
    }

    fn take_all(&mut self, logits: &[f32], weight: impl Fn(f32) -> f32) {
        self.ids.clear();
        self.weights.clear();
        self.ids.extend(0..logits.len() as u32);
        self.weights.extend(logits.iter().map(|&logit| weight(logit)));
        self.total = sum(&self.weights);
    }

    /// Takes the fewest likeliest that together weigh `enough`, ranking a few first and more only if they fall short.
    fn take_until(
        &mut self,
        enough: f64,
        logits: &[f32],
        ranked: &mut Vec<Ranked>,
        weight: impl Fn(f32) -> f32,
    ) {
        let mut looked_at = FIRST_LOOK;
        loop {
            largest(logits, looked_at, ranked);
            self.take(ranked, &weight);
            if self.total >= enough || looked_at >= logits.len() {
                return self.keep_until(enough);
            }
            looked_at *= 8;
        }
    }

    fn take(&mut self, ranked: &[Ranked], weight: impl Fn(f32) -> f32) {
        self.ids.clear();
        self.weights.clear();
        self.ids.extend(ranked.iter().map(|ranked| ranked.id));
        self.weights.extend(ranked.iter().map(|ranked| weight(ranked.value)));
        self.total = sum(&self.weights);
    }

    /// Keeps the fewest from the first on that together weigh `enough`; they are ranked.
    fn keep_until(&mut self, enough: f64) {
        let mut sum = 0.0;
        let reached = self.weights.iter().position(|&weight| {
            sum += f64::from(weight);
            sum >= enough
        });
        if let Some(last) = reached {
            self.ids.truncate(last + 1);
            self.weights.truncate(last + 1);
            self.total = sum;
        }
    }

    fn keep_at_least(&mut self, ratio: f32) {
        let mut kept = self.weights.iter().map(|&weight| weight >= ratio);
        self.ids.retain(|_| kept.next().expect("a weight for each token"));
        self.weights.retain(|&weight| weight >= ratio);
        self.total = sum(&self.weights);
    }
}

fn sum(weights: &[f32]) -> f64 {
    weights.iter().map(|&weight| f64::from(weight)).sum()
}

fn checked_max(logits: &[f32]) -> Result<f32, RunError> {
    // Lanes of their own, so that the compiler may keep them in one register.
    let (mut lanes, mut has_nan) = ([f32::NEG_INFINITY; LANES], false);
    for block in logits.chunks(LANES) {
        for (lane, &logit) in lanes.iter_mut().zip(block) {
            has_nan |= logit.is_nan();
            *lane = if logit > *lane { logit } else { *lane };
        }
    }
    let max = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let unusable = |found| Err(RunError::Logits { found });
    match max {
        _ if has_nan => unusable("NaN"),
        f32::INFINITY => unusable("infinity"),
        f32::NEG_INFINITY => unusable("minus infinity for every token"),
        _ => Ok(max),
    }
}
