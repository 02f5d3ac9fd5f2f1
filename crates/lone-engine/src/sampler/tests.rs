//! Distributions against the definition, draws against the distribution.

use proptest::prelude::*;

use super::*;

fn sampler(sampling: Sampling) -> Sampler {
    Sampler::new(Sampling { seed: Some(7), ..sampling }, 100).unwrap()
}

fn sampled(temperature: f32) -> Sampling {
    Sampling { temperature, ..Sampling::default() }
}

/// Probabilities by definition: a full sort, and each filter in its turn.
fn brute_force(logits: &[f32], sampling: &Sampling) -> Vec<f64> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    let max = f64::from(logits[order[0]]);
    let weight = |id: usize| ((f64::from(logits[id]) - max) / f64::from(sampling.temperature)).exp();
    if sampling.top_k > 0 {
        order.truncate(sampling.top_k);
    }
    let total: f64 = order.iter().map(|&id| weight(id)).sum();
    let mut before = 0.0;
    order.retain(|&id| {
        let keep = before == 0.0 || before < f64::from(sampling.top_p) * total;
        before += weight(id);
        keep
    });
    order.retain(|&id| weight(id) >= f64::from(sampling.min_p));
    let total: f64 = order.iter().map(|&id| weight(id)).sum();
    let mut probabilities = vec![0.0; logits.len()];
    order.iter().for_each(|&id| probabilities[id] = weight(id) / total);
    probabilities
}

/// Pearson's statistic of `draws` draws, over the tokens of probability above 0.
fn chi_square(sampler: &mut Sampler, logits: &[f32], probabilities: &[f64], draws: usize) -> f64 {
    let mut counts = vec![0usize; logits.len()];
    for _ in 0..draws {
        counts[sampler.choose(logits).unwrap() as usize] += 1;
    }
    let cells = counts.iter().zip(probabilities);
    cells
        .map(|(&count, &probability)| match probability * draws as f64 {
            0.0 => {
                assert_eq!(count, 0, "a token that was filtered out was drawn");
                0.0
            }
            expected => (count as f64 - expected).powi(2) / expected,
        })
        .sum()
}

#[test]
fn draws_follow_the_distribution_whatever_the_settings() {
    let logits = [2.0, 1.5, 1.0, 1.0, 0.5, 0.0, -0.5, -1.0];
    let settings = [
        sampled(1.0),
        sampled(0.6),
        Sampling { top_k: 4, ..sampled(1.3) },
        Sampling { top_p: 0.8, ..sampled(1.0) },
        Sampling { min_p: 0.25, ..sampled(1.0) },
        Sampling { top_k: 6, top_p: 0.9, min_p: 0.2, ..sampled(1.7) },
    ];
    for sampling in settings {
        let probabilities = brute_force(&logits, &sampling);
        let statistic = chi_square(&mut sampler(sampling.clone()), &logits, &probabilities, 200_000);
        // 7 degrees of freedom at most: exceeded once in 10 000 by a right sampler, and the seed is fixed.
        assert!(statistic < 29.9, "{sampling:?}: {statistic}");
    }
}

proptest! {
    #[test]
    fn the_distribution_is_the_one_by_definition(
        logits in prop::collection::vec(prop_oneof![-8.0f32..8.0, (-2i8..3).prop_map(f32::from)], 1..100),
        temperature in 0.2f32..3.0,
        top_k in 0usize..30,
        top_p in 0.05f32..=1.0,
        min_p in prop_oneof![Just(0.0f32), 0.01f32..0.9],
    ) {
        let sampling = Sampling { top_k, top_p, min_p, ..sampled(temperature) };
        let expected = brute_force(&logits, &sampling);
        let mut sampler = sampler(sampling.clone());
        let found = sampler.distribution(&logits).unwrap();
        let near_an_edge = |id: usize| {
            // Rounding may move a token that sits on the edge of a filter across it.
            let nudged = |p: f32, m: f32| brute_force(&logits, &Sampling { top_p: p, min_p: m, ..sampling.clone() })[id] > 0.0;
            nudged(top_p * 1.0001, min_p * 0.9999) != nudged(top_p * 0.9999, min_p * 1.0001)
        };
        if !(0..logits.len()).any(near_an_edge) {
            for (id, expected) in expected.iter().enumerate() {
                prop_assert!((found.probability(id as u32) - expected).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn greedy_takes_the_lowest_of_equal_ids_and_no_random_number() {
    let mut sampler = sampler(Sampling::default());
    assert_eq!(sampler.choose(&[1.0, 3.0, 3.0, 2.0]).unwrap(), 1);
    let distribution = sampler.distribution(&[1.0, 3.0, 3.0, 2.0]).unwrap();
    assert_eq!(distribution.iter().collect::<Vec<_>>(), [(1, 1.0)]);
    assert_eq!(uniform(&mut sampler.random), uniform(&mut ChaCha8Rng::seed_from_u64(7)));
}

#[test]
fn the_repetition_penalty_counts_the_prompt_and_the_others_only_the_answer() {
    let mut sampler = sampler(Sampling {
        repetition_penalty: 2.0,
        presence_penalty: 0.25,
        frequency_penalty: 0.5,
        logit_bias: [(4, 3.0)].into(),
        ..Sampling::default()
    });
    sampler.read_prompt(&[0, 0, 1]);
    for token in [1, 2, 2] {
        sampler.say(token);
    }
    sampler.distribution(&[4.0, -1.0, 3.0, 1.0, -5.0]).unwrap();
    // 4/2; -1*2 - 0.25 - 0.5; 3/2 - 0.25 - 2*0.5; untouched; -5 + 3.
    assert_eq!(sampler.adjusted, [2.0, -2.75, 0.25, 1.0, -2.0]);
}

#[test]
fn the_bias_comes_before_the_penalties() {
    let mut sampler =
        sampler(Sampling { repetition_penalty: 2.0, logit_bias: [(0, 3.0)].into(), ..Sampling::default() });
    sampler.say(0);
    sampler.distribution(&[-1.0, 0.0]).unwrap();
    assert_eq!(sampler.adjusted, [1.0, 0.0]);
}

#[test]
fn the_same_seed_draws_the_same_tokens_on_every_machine() {
    let draw = |seed| {
        let mut sampler = Sampler::new(Sampling { seed: Some(seed), ..sampled(1.0) }, 10).unwrap();
        (0..12).map(|_| sampler.choose(&[0.0; 10]).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_eq!(draw(1), [4, 0, 5, 2, 2, 7, 4, 1, 8, 7, 4, 5]);
}

#[test]
fn samplers_without_a_seed_differ_and_say_theirs() {
    let unseeded = || Sampler::new(sampled(1.0), 10).unwrap();
    let (mut one, other) = (unseeded(), unseeded());
    assert_ne!(one.seed(), other.seed());
    assert!((0..64).all(|_| unseeded().seed() < 1 << 53), "a double cannot hold it");
    let mut again = Sampler::new(Sampling { seed: Some(one.seed()), ..sampled(1.0) }, 10).unwrap();
    for _ in 0..20 {
        assert_eq!(one.choose(&[0.0; 10]).unwrap(), again.choose(&[0.0; 10]).unwrap());
    }
}

#[test]
fn tokens_ruled_out_are_never_drawn() {
    for sampling in [sampled(1.0), Sampling { top_k: 3, ..sampled(1.0) }, Sampling::default()] {
        let mut sampler = sampler(sampling);
        for _ in 0..100 {
            let token = sampler.choose(&[f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 0.1]).unwrap();
            assert!(token == 1 || token == 3);
        }
    }
}

#[test]
fn logits_nothing_can_be_drawn_from_are_an_error() {
    for (logits, found) in [
        ([0.0, f32::NAN], "NaN"),
        ([0.0, f32::INFINITY], "infinity"),
        ([f32::NEG_INFINITY; 2], "minus infinity for every token"),
    ] {
        for sampling in [Sampling::default(), sampled(1.0)] {
            let error = sampler(sampling).choose(&logits).unwrap_err().to_string();
            assert_eq!(error, format!("the model returned {found} among its logits"));
        }
    }
}
