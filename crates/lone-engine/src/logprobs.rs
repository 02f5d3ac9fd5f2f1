//! How likely the model itself found a token, before any setting changed that.

use crate::sampler::largest;

/// Natural logarithms of probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprobs {
    /// Of the token that was chosen.
    pub chosen: f32,
    /// Of the likeliest tokens, likeliest first.
    pub top: Vec<(u32, f32)>,
}

impl Logprobs {
    /// Of `chosen` and the `top` likeliest tokens by `logits (V)`.
    pub fn new(logits: &[f32], chosen: u32, top: usize) -> Self {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&logit| f64::from((logit - max).exp())).sum();
        let normalizer = f64::from(max) + sum.ln();
        let logprob = |logit: f32| (f64::from(logit) - normalizer) as f32;
        let mut ranked = Vec::new();
        largest(logits, top, &mut ranked);
        let top = ranked.iter().map(|ranked| (ranked.id, logprob(ranked.value))).collect();
        Logprobs { chosen: logprob(logits[chosen as usize]), top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_logarithms_of_the_softmax() {
        let logits = [0.25f32, 0.5, 0.125, 0.125].map(|p: f32| p.ln() + 30.0);
        let logprobs = Logprobs::new(&logits, 2, 2);
        let close = |a: f32, p: f32| (a - p.ln()).abs() < 1e-5;
        assert!(close(logprobs.chosen, 0.125));
        assert_eq!(logprobs.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 0]);
        assert!(close(logprobs.top[0].1, 0.5) && close(logprobs.top[1].1, 0.25));
    }
}
