//! Guessed tokens on the two small trained models, run on the CPU: the same answers in fewer passes.

use std::sync::atomic::AtomicBool;

use lone_convert::ConvertOptions;
use lone_engine::{
    Event, Generation, NgramSimple, Proposer, Request, Runtime, SessionOptions, Stats, SuffixProposer,
};

use crate::support::{Asked, MODELS, exam, load, model};

/// Where the two likeliest tokens are this near, the shape of a pass decides between them.
const NEAR_TIE: f32 = 1e-3;

/// What a checking pass is taken to cost, so that what is guessed does not depend on the clock: what one of 17 tokens
/// costs on the Neural Engine.
const PASS_COST: f64 = 1.4;

/// A model that answers, and prompts of its exam.
struct Examined {
    runtime: Runtime,
    exam: Vec<Asked>,
}

struct Answer {
    tokens: Vec<u32>,
    /// By how much the likeliest token led the next one, for each token.
    margins: Vec<f32>,
    stats: Stats,
}

impl Examined {
    fn new(name: &str) -> Self {
        let options = ConvertOptions {
            ctx: vec![256],
            prefill: vec![32],
            spec_drafts: Some(16),
            ..ConvertOptions::default()
        };
        Examined { runtime: load(&model(name), &options), exam: exam(name) }
    }

    fn prompts(&self, task: &str) -> Vec<Vec<u32>> {
        self.exam.iter().filter(|asked| asked.task == task).map(|asked| asked.prompt.clone()).collect()
    }

    fn answer(&mut self, prompt: &[u32], proposer: Option<Box<dyn Proposer>>) -> Answer {
        let mut session = self.runtime.session(&SessionOptions::default()).unwrap();
        session.set_proposer(&self.runtime, proposer).unwrap();
        let stop_tokens = self.runtime.facts().eos_token_ids.clone();
        let (prompt, logprobs) = (prompt.to_vec(), Some(2));
        let request = Request { prompt, stop_tokens, max_new_tokens: 80, logprobs, ..Request::default() };
        let mut generation = Generation::begin(&self.runtime, &mut session, None, request).unwrap();
        let mut margins = Vec::new();
        let mut emit = |event| {
            if let Event::Token { logprobs: Some(logprobs), .. } = event {
                margins.push(logprobs.top[0].1 - logprobs.top[1].1);
            }
        };
        generation.run(&mut self.runtime, &mut session, &AtomicBool::new(false), &mut emit).unwrap();
        Answer { tokens: generation.token_ids().to_vec(), margins, stats: generation.stats() }
    }
}

fn ngram() -> Option<Box<dyn Proposer>> {
    Some(Box::new(NgramSimple::new(NgramSimple::USUAL_N, NgramSimple::USUAL_M)))
}

fn suffix() -> Option<Box<dyn Proposer>> {
    Some(Box::new(SuffixProposer::new().with_cost(PASS_COST)))
}

/// Decode passes of all answers to the questions of `task`: without guesses, with ngram-simple's, with the automaton's.
fn passes(examined: &mut Examined, task: &str) -> [usize; 3] {
    let prompts = examined.prompts(task);
    assert_eq!(prompts.len(), 40);
    [|| None, ngram, suffix].map(|proposer: fn() -> Option<Box<dyn Proposer>>| {
        prompts.iter().map(|prompt| examined.answer(prompt, proposer()).stats.decode.passes).sum()
    })
}

#[test]
fn copied_code_takes_half_the_passes_by_ngrams_and_a_third_by_suffixes() {
    for name in MODELS {
        let [plain, ngram, suffix] = passes(&mut Examined::new(name), "code");
        println!("{name}: {plain} {ngram} {suffix}");
        assert!(plain >= 2 * ngram, "{name}: {plain} passes without guesses, {ngram} by ngrams");
        assert!(plain >= 3 * suffix, "{name}: {plain} passes without guesses, {suffix} by suffixes");
    }
}

#[test]
fn short_repeats_take_half_the_passes_by_suffixes_and_nearly_all_by_ngrams() {
    for name in MODELS {
        let [plain, ngram, suffix] = passes(&mut Examined::new(name), "repeat");
        println!("{name}: {plain} {ngram} {suffix}");
        assert!(ngram <= plain && 10 * ngram >= 9 * plain, "{name}: {ngram} of {plain} passes by ngrams");
        assert!(plain >= 2 * suffix, "{name}: {plain} passes without guesses, {suffix} by suffixes");
    }
}

#[test]
fn answers_that_repeat_nothing_take_no_pass_more() {
    for name in MODELS {
        let mut examined = Examined::new(name);
        for task in ["canned", "capital"] {
            let [plain, ngram, suffix] = passes(&mut examined, task);
            println!("{name}: {task} {plain} {ngram} {suffix}");
            assert_eq!(plain, ngram);
            assert!(suffix <= plain);
        }
    }
}

#[test]
fn greedy_answers_are_the_same_with_guesses_but_for_near_ties() {
    let (mut compared, mut near_ties) = (0, 0);
    for name in MODELS {
        let mut examined = Examined::new(name);
        for task in ["code", "repeat", "recall", "json", "count"] {
            for prompt in examined.prompts(task).iter().step_by(2) {
                let plain = examined.answer(prompt, None);
                let guessed = examined.answer(prompt, suffix());
                compared += 1;
                let differs = |(a, b): (&u32, &u32)| a != b;
                if let Some(at) = plain.tokens.iter().zip(&guessed.tokens).position(differs) {
                    assert!(plain.margins[at] < NEAR_TIE, "{name}, {task}: {:?}", plain.margins[at]);
                    near_ties += 1;
                } else {
                    assert_eq!(plain.tokens.len(), guessed.tokens.len());
                }
            }
        }
    }
    println!("{near_ties} of {compared} answers differ, at near ties");
    assert!(near_ties * 20 <= compared, "{near_ties} near ties in {compared} answers");
}
