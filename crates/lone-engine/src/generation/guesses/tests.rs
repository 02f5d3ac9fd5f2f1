//! Answers with guesses against the same answers without; choices against the distribution they follow.

use super::*;
use crate::fake::{Spec, VOCAB};
use crate::{LoadOptions, Request};
use crate::{NgramSimple, Proposer, RequestError, Sampler, Sampling, SessionOptions};
use lone_bundle::Role;
use lone_mil::{Interpreter, Reference};
use std::sync::atomic::AtomicBool;

const PROMPT: [u32; 9] = [1, 6, 3, 0, 2, 9, 4, 4, 8];

/// Knows the answer, and spoils a guess now and then.
#[derive(Debug)]
struct Oracle {
    answer: Vec<u32>,
    said: usize,
    /// Which of a pass's guesses is spoilt, pass by pass.
    spoilt: Vec<usize>,
}

impl Proposer for Oracle {
    fn begin(&mut self, _history: &[u32]) {
        self.said = 0;
    }

    fn push(&mut self, token: u32) {
        assert_eq!(token, self.answer[self.said]);
        self.said += 1;
    }

    fn propose(&mut self, terms: &Terms, draft: &mut Vec<u32>) {
        draft.extend(self.answer[self.said..].iter().take(terms.most));
        self.spoilt.rotate_left(1);
        if let Some(guess) = draft.get_mut(self.spoilt[0]) {
            *guess = (*guess + 1) % VOCAB as u32;
        }
    }

    fn learn(&mut self, accepted: usize, rejected: bool) {
        assert!(accepted <= self.spoilt[0]);
        assert!(!rejected || accepted == self.spoilt[0]);
    }
}

struct Answer {
    generation: Generation,
    events: Vec<Event>,
    session: Session,
}

fn answer(runtime: &mut Runtime, request: &Request, proposer: Option<Box<dyn Proposer>>) -> Answer {
    let mut session = runtime.session(&SessionOptions::default()).unwrap();
    session.set_proposer(runtime, proposer).unwrap();
    let mut generation = Generation::begin(runtime, &mut session, None, request.clone()).unwrap();
    let mut events = Vec::new();
    let cancelled = AtomicBool::new(false);
    generation.run(runtime, &mut session, &cancelled, &mut |event| events.push(event)).unwrap();
    Answer { generation, events, session }
}

fn request(sampling: Sampling) -> Request {
    let prompt = PROMPT.to_vec();
    Request { prompt, sampling, max_new_tokens: 29, logprobs: Some(2), ..Request::default() }
}

/// Answers with and without guesses, of which `spoilt` are wrong, and compares everything that can be seen of the two.
fn compare(request: &Request, spoilt: &[usize]) -> Answer {
    compare_on(&mut Spec::default().load(), request, spoilt)
}

fn compare_on(runtime: &mut Runtime, request: &Request, spoilt: &[usize]) -> Answer {
    let plain = answer(runtime, request, None);
    let known = plain.generation.token_ids().to_vec();
    let oracle = Oracle { answer: known, said: 0, spoilt: spoilt.to_vec() };
    let guessed = answer(runtime, request, Some(Box::new(oracle)));
    assert_eq!(guessed.generation.token_ids(), plain.generation.token_ids());
    assert_eq!(guessed.events, plain.events);
    assert_eq!(guessed.session.tokens(), plain.session.tokens());
    assert_eq!(guessed.session.logits(), plain.session.logits());
    assert!(saved(runtime, &guessed) == saved(runtime, &plain), "caches differ, spoilt {spoilt:?}");
    let [plain, guessed_stats] = [plain.generation.stats(), guessed.generation.stats()];
    assert_eq!(guessed_stats.decode.tokens, plain.decode.tokens);
    assert_eq!(plain.speculated, crate::Speculated::default());
    guessed
}

/// What the answer left in the caches.
fn saved(runtime: &Runtime, answer: &Answer) -> Vec<u8> {
    let mut file = Vec::new();
    answer.session.save(runtime, &crate::Dialogue::default(), &mut file).unwrap();
    file
}

fn settings() -> Vec<Sampling> {
    let sampled = |temperature| Sampling { temperature, seed: Some(3), ..Sampling::default() };
    vec![
        Sampling::default(),
        sampled(1.0),
        Sampling { top_k: 5, top_p: 0.9, ..sampled(0.7) },
        Sampling { min_p: 0.1, ..sampled(1.5) },
        Sampling { repetition_penalty: 1.3, frequency_penalty: 0.4, presence_penalty: 0.2, ..sampled(1.0) },
        Sampling {
            repetition_penalty: 1.7,
            logit_bias: [(4, 3.0), (7, -50.0)].into(),
            ..Sampling::default()
        },
    ]
}

#[test]
fn an_answer_with_guesses_is_that_without_wherever_a_guess_is_wrong() {
    for sampling in settings() {
        for spoilt in [&[0][..], &[1], &[2], &[3], &[9], &[2, 0, 9, 1, 1, 3, 0]] {
            compare(&request(sampling.clone()), spoilt);
        }
    }
}

#[test]
fn on_the_reference_interpreter_a_sampled_answer_and_its_caches_are_the_same_to_the_bit_for_any_seed() {
    let mut runtime = crate::session::rejections::load(&Interpreter::<Reference>::new());
    let mut rejected = 0;
    for seed in 0..40 {
        let sampling = Sampling { temperature: 2.0, seed: Some(seed), ..Sampling::default() };
        let spoilt: Vec<usize> = (0..7).map(|pass| (seed as usize + 3 * pass) % 5).collect();
        let speculated = compare_on(&mut runtime, &request(sampling), &spoilt).generation.stats().speculated;
        rejected += speculated.drafted - speculated.accepted;
    }
    assert!(rejected > 40);
}

#[test]
fn right_guesses_are_counted_and_save_passes() {
    let stats = compare(&request(Sampling::default()), &[9]).generation.stats();
    assert_eq!((stats.decode.tokens, stats.decode.passes), (28, 7));
    assert_eq!(stats.tokens_per_pass(), 4.0);
    let speculated = stats.speculated;
    assert_eq!((speculated.drafted, speculated.accepted, speculated.passes), (21, 21, 7));
    let stats = compare(&request(Sampling::default()), &[1]).generation.stats();
    assert_eq!((stats.decode.passes, stats.speculated.accepted), (14, 14));
    assert_eq!(stats.speculated.drafted, 12 * 3 + 3 + 1, "no more than can still be said");
}

#[test]
fn an_answer_may_end_among_its_guesses() {
    let whole = compare(&request(Sampling::default()), &[9]);
    let said = whole.generation.token_ids();
    for max_new_tokens in 1..12 {
        compare(&Request { max_new_tokens, ..request(Sampling::default()) }, &[9]);
    }
    for stop in said {
        let request = Request { stop_tokens: vec![*stop], ..request(Sampling::default()) };
        let ended = compare(&request, &[9]);
        let guessed = ended.generation.stats().speculated;
        assert_eq!(guessed.drafted, guessed.accepted, "nothing is guessed past the end");
    }
    let full = Request { max_new_tokens: 1000, ..request(Sampling::default()) };
    assert_eq!(compare(&full, &[9]).session.remaining(), 0);
}

#[test]
fn a_session_goes_on_after_guesses_as_after_none() {
    let mut runtime = Spec::default().load();
    let proposer = || Box::new(NgramSimple::new(2, 4)) as Box<dyn Proposer>;
    let mut guessing = runtime.session(&SessionOptions::default()).unwrap();
    guessing.set_proposer(&runtime, Some(proposer())).unwrap();
    let mut prompt = PROMPT[..4].to_vec();
    for turn in 0..3 {
        prompt.extend([2, 7, turn]);
        let request = Request { prompt: prompt.clone(), max_new_tokens: 8, ..Request::default() };
        let plain = answer(&mut runtime, &request, None);
        let mut generation = Generation::begin(&runtime, &mut guessing, None, request).unwrap();
        generation.run(&mut runtime, &mut guessing, &AtomicBool::new(false), &mut |_| ()).unwrap();
        assert_eq!(generation.token_ids(), plain.generation.token_ids());
        assert_eq!(generation.stats().reused_tokens, (prompt.len() - 4) * usize::from(turn > 0));
        prompt.extend(generation.token_ids());
    }
}

#[test]
fn a_runtime_that_cannot_check_guesses_refuses_a_proposer() {
    let options = LoadOptions { roles: vec![Role::Decode, Role::Prefill], ..LoadOptions::default() };
    let runtime = Spec::default().load_with(&options);
    let mut session = runtime.session(&SessionOptions::default()).unwrap();
    let error = session.set_proposer(&runtime, Some(Box::new(NgramSimple::new(12, 16)))).unwrap_err();
    assert_eq!(error, RequestError::NoVerify);
    assert_eq!(session.set_proposer(&runtime, None), Ok(()));
}

/// Three rows of logits: of a first token, of a second one after the first guess, of a third after both.
const LOGITS: [[f32; 6]; 3] =
    [[1.0, 0.4, 0.0, -0.5, -1.0, 2.0], [0.3, 0.2, 0.1, 0.0, -0.1, -0.2], [0.0, 3.0, 0.0, -2.0, 1.0, 0.5]];

/// What a pass with these guesses may say, and how likely it is by the sampler's own distribution.
fn outcomes(sampling: &Sampling, guessed: [u32; 2]) -> Vec<(Vec<u32>, f64)> {
    let mut sampler = Sampler::new(sampling.clone(), 6).unwrap();
    let mut row = |logits: &[f32; 6]| sampler.distribution(logits).unwrap().clone();
    let rows = LOGITS.each_ref().map(&mut row);
    let mut outcomes = Vec::new();
    let mut chance = 1.0;
    for (taken, distribution) in rows.iter().enumerate() {
        for (token, probability) in distribution.iter() {
            if guessed.get(taken) != Some(&token) {
                outcomes.push(([&guessed[..taken], &[token]].concat(), chance * probability));
            }
        }
        chance *= guessed.get(taken).map_or(0.0, |&guess| distribution.probability(guess));
    }
    outcomes
}

#[test]
fn what_a_pass_with_guesses_says_follows_the_models_distribution() {
    let sampled = |temperature| Sampling { temperature, seed: Some(11), ..Sampling::default() };
    let settings = [
        sampled(1.0),
        sampled(0.5),
        Sampling { top_k: 3, ..sampled(1.2) },
        Sampling { top_p: 0.85, ..sampled(1.0) },
        Sampling { min_p: 0.2, ..sampled(1.3) },
        Sampling { top_k: 5, top_p: 0.95, min_p: 0.05, logit_bias: [(3, 1.5)].into(), ..sampled(0.9) },
    ];
    let runtime = Spec::default().load();
    let logits = LOGITS.concat();
    for (sampling, guessed) in settings.iter().flat_map(|sampling| [(sampling, [5, 0]), (sampling, [1, 3])]) {
        let mut session = runtime.session(&SessionOptions::default()).unwrap();
        let request = Request { sampling: sampling.clone(), ..request(Sampling::default()) };
        let mut generation = Generation::begin(&runtime, &mut session, None, request).unwrap();
        let mut counts = std::collections::HashMap::<Vec<u32>, usize>::new();
        let draws = 200_000;
        for _ in 0..draws {
            *counts.entry(generation.choose(&guessed, &logits, 6).unwrap()).or_default() += 1;
        }
        let outcomes = outcomes(sampling, guessed);
        let likely = outcomes.iter().filter(|(_, probability)| *probability > 0.0);
        let statistic = likely.clone().map(|(said, probability)| {
            let expected = probability * f64::from(draws);
            (counts.remove(said).unwrap_or_default() as f64 - expected).powi(2) / expected
        });
        let statistic: f64 = statistic.sum();
        assert!(counts.is_empty(), "{counts:?} cannot be said");
        // Exceeded about once in 10 000 by a right sampler, and the seed is fixed.
        let freedom = likely.count() as f64 - 1.0;
        let most = freedom + 3.72 * (2.0 * freedom).sqrt() + 9.2;
        assert!(statistic < most, "{sampling:?} {guessed:?}: {statistic} of {freedom} degrees of freedom");
    }
}
