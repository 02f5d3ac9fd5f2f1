//! How tokens are chosen: what was typed, over what the checkpoint's generation_config.json says.

use lone_bundle::SamplingDefaults;
use lone_engine::Sampling;

use crate::args::SamplingArgs;

/// The settings in force.
pub(crate) fn resolve(typed: &SamplingArgs, defaults: &SamplingDefaults) -> Sampling {
    let default = Sampling::from(defaults);
    Sampling {
        repetition_penalty: typed.repetition_penalty.unwrap_or(default.repetition_penalty),
        presence_penalty: typed.presence_penalty.unwrap_or(default.presence_penalty),
        frequency_penalty: typed.frequency_penalty.unwrap_or(default.frequency_penalty),
        temperature: typed.temperature.unwrap_or(default.temperature),
        top_k: typed.top_k.unwrap_or(default.top_k),
        top_p: typed.top_p.unwrap_or(default.top_p),
        min_p: typed.min_p.unwrap_or(default.min_p),
        seed: typed.seed,
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_wins_over_generation_config_and_that_over_greedy() {
        let defaults =
            SamplingDefaults { temperature: Some(0.3), top_k: Some(50), ..SamplingDefaults::default() };
        let typed = SamplingArgs { temperature: Some(0.9), seed: Some(7), ..SamplingArgs::default() };
        let sampling = resolve(&typed, &defaults);
        assert_eq!((sampling.temperature, sampling.top_k, sampling.seed), (0.9, 50, Some(7)));
        let silent = resolve(&SamplingArgs::default(), &SamplingDefaults::default());
        assert_eq!(silent, Sampling::default());
    }
}
