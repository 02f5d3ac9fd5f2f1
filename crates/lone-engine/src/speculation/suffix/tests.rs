//! What is guessed, and what guessing costs and gains where guesses are right, where they are not, and in between.

use super::*;

const MOST: usize = 16;

/// A proposer that has gained so much that it may try anything.
fn trusting() -> SuffixProposer {
    let proposer = SuffixProposer::new().with_cost(1.2);
    proposer.experience.odds().promise(MOST, Some(1.2), true);
    proposer.experience.odds().settle(MOST, Some(1.2));
    proposer
}

fn guess(proposer: &mut SuffixProposer, most: usize) -> Vec<u32> {
    let mut draft = Vec::new();
    proposer.propose(&Terms { most, cost: None }, &mut draft);
    draft
}

#[test]
fn it_guesses_what_followed_the_longest_repeat() {
    let mut proposer = trusting();
    proposer.begin(&[1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 8, 8, 1, 2]);
    proposer.push(3);
    assert_eq!(guess(&mut proposer, 3), [4, 5, 6]);
    assert_eq!(guess(&mut proposer.with_most(2), 3), [4, 5]);
}

#[test]
fn a_repeat_that_runs_into_the_present_goes_round() {
    let mut proposer = trusting();
    proposer.begin(&[1, 2, 3, 1, 2, 3, 1, 2]);
    assert_eq!(guess(&mut proposer, 7), [3, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn without_a_repeat_or_a_profit_it_guesses_nothing() {
    let mut proposer = trusting();
    assert!(guess(&mut proposer, 9).is_empty());
    proposer.begin(&[1, 2, 3, 4]);
    assert!(guess(&mut proposer, 9).is_empty());
    let mut proposer = trusting().with_cost(9.0);
    proposer.begin(&[1, 2, 3, 1, 2]);
    assert!(guess(&mut proposer, 9).is_empty());
}

#[test]
fn a_history_that_goes_on_is_not_read_again_and_another_one_is() {
    let mut proposer = trusting();
    proposer.begin(&[1, 2, 3, 4, 5]);
    proposer.push(1);
    proposer.begin(&[1, 2, 3, 4, 5, 1, 2, 3]);
    assert_eq!(guess(&mut proposer, 2), [4, 5]);
    proposer.begin(&[7, 8, 9, 7, 8]);
    assert_eq!(guess(&mut proposer, 2), [9, 7]);
}

/// Answers `answer` to `prompt` with guesses, and returns what that takes in passes of one token.
fn answer(proposer: &mut SuffixProposer, prompt: &[u32], answer: &[u32], cost: f64) -> f64 {
    proposer.begin(prompt);
    proposer.push(answer[0]);
    let (mut said, mut passes) = (1, 0.0);
    while said < answer.len() {
        let most = MOST.min(answer.len() - said - 1);
        let draft = if most > 0 { guess(proposer, most) } else { Vec::new() };
        let right = draft.iter().zip(&answer[said..]).take_while(|(guess, token)| guess == token).count();
        if draft.is_empty() {
            passes += 1.0;
        } else {
            passes += cost;
            proposer.learn(right, right < draft.len());
        }
        answer[said..=said + right].iter().for_each(|&token| proposer.push(token));
        said += right + 1;
    }
    passes
}

/// Numbers below `most` that look random.
fn random(seed: u32, most: u32) -> impl Iterator<Item = u32> {
    let step = |x: &u32| Some(x.wrapping_mul(747_796_405).wrapping_add(2_891_336_453));
    std::iter::successors(Some(seed), step)
        .map(move |x| ((x >> ((x >> 28) + 4)) ^ x).wrapping_mul(277_803_737) >> 16)
        .map(move |x| x % most)
}

const COSTS: [f64; 5] = [1.1, 1.4, 2.0, 3.0, 5.0];

#[test]
fn answers_without_a_pattern_lose_less_than_a_hundredth_long_or_short() {
    for (cost, vocabulary, length) in COSTS
        .iter()
        .flat_map(|cost| [3, 6, 20, 300].iter().flat_map(move |v| [25, 2000].map(|n| (*cost, *v, n))))
    {
        let experience = Experience::new();
        let (mut passes, mut plain) = (0.0, 0.0);
        for seed in 0..(4000 / length) as u32 {
            let text: Vec<u32> = random(seed * 977 + 5, vocabulary).take(30 + length).collect();
            let mut proposer = SuffixProposer::new().with_cost(cost).with_experience(&experience);
            passes += answer(&mut proposer, &text[..30], &text[30..], cost);
            plain += length as f64 - 1.0;
        }
        assert!(
            passes <= 1.01 * plain,
            "cost {cost}, {vocabulary} tokens, {length} each: {passes} of {plain}"
        );
    }
}

#[test]
fn a_prompt_that_ends_as_it_did_before_and_is_then_answered_otherwise_costs_nothing() {
    for cost in COSTS {
        let experience = Experience::new();
        for length in 1..=40 {
            let repeated: Vec<u32> = (100..100 + length).collect();
            let prompt = [&[1], &repeated[..], &[7, 2, 3, 4, 5, 6], &repeated].concat();
            let mut proposer = SuffixProposer::new().with_cost(cost).with_experience(&experience);
            assert_eq!(
                answer(&mut proposer, &prompt, &[7, 51, 52], cost),
                2.0,
                "cost {cost}, {length} tokens"
            );
        }
    }
}

#[test]
fn a_copy_is_soon_trusted_and_after_it_the_next_ones_from_their_beginning() {
    let copied: Vec<u32> = (10..60).collect();
    let prompt = [&copied[..], &[1, 2]].concat();
    for (cost, most) in [(1.4, 13.0), (3.0, 30.0)] {
        let experience = Experience::new();
        let taken = [0; 3].map(|_| {
            let mut proposer = SuffixProposer::new().with_cost(cost).with_experience(&experience);
            answer(&mut proposer, &prompt, &copied, cost)
        });
        assert!(taken[0] < most, "{taken:?}");
        assert!(taken[1..].iter().all(|taken| *taken <= 3.0 * cost), "{taken:?}");
    }
}
