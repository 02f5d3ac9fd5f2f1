//! Guessed tokens on the two small trained models, run on the CPU: the same answers in fewer passes.

use std::sync::atomic::AtomicBool;

use lone_convert::ConvertOptions;
use lone_engine::{
    Event, Experience, Generation, NgramSimple, Proposer, Request, Runtime, Sampling, SessionOptions, Stats,
    SuffixProposer,
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
    /// The log probability of the likeliest token, for each token.
    likeliest: Vec<f32>,
    stats: Stats,
}

impl Answer {
    /// Where another answer says something else.
    fn parts_from(&self, other: &Answer) -> Option<usize> {
        self.tokens.iter().zip(&other.tokens).position(|(a, b)| a != b)
    }
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
        self.answer_with(&Sampling::default(), prompt, proposer)
    }

    fn answer_with(
        &mut self,
        sampling: &Sampling,
        prompt: &[u32],
        proposer: Option<Box<dyn Proposer>>,
    ) -> Answer {
        let mut session = self.runtime.session(&SessionOptions::default()).unwrap();
        session.set_proposer(&self.runtime, proposer).unwrap();
        let stop_tokens = self.runtime.facts().eos_token_ids.clone();
        let request = Request {
            prompt: prompt.to_vec(),
            sampling: sampling.clone(),
            stop_tokens,
            max_new_tokens: 80,
            logprobs: Some(2),
            ..Request::default()
        };
        let mut generation = Generation::begin(&self.runtime, &mut session, None, request).unwrap();
        let (mut margins, mut likeliest) = (Vec::new(), Vec::new());
        let mut emit = |event| {
            if let Event::Token { logprobs: Some(logprobs), .. } = event {
                margins.push(logprobs.top[0].1 - logprobs.top[1].1);
                likeliest.push(logprobs.top[0].1);
            }
        };
        generation.run(&mut self.runtime, &mut session, &AtomicBool::new(false), &mut emit).unwrap();
        Answer { tokens: generation.token_ids().to_vec(), margins, likeliest, stats: generation.stats() }
    }
}

fn ngram() -> Box<dyn Proposer> {
    Box::new(NgramSimple::new(NgramSimple::USUAL_N, NgramSimple::USUAL_M))
}

fn suffix(experience: &Experience, cost: f64) -> Box<dyn Proposer> {
    Box::new(SuffixProposer::new().with_cost(cost).with_experience(experience))
}

/// Decode passes of all answers to the questions of a task.
#[derive(Debug, Clone, Copy, Default)]
struct Passes {
    all: usize,
    /// Those that checked guesses.
    checking: usize,
}

impl Passes {
    /// What they cost in passes of one token, where one that checks guesses costs `cost` of them.
    fn weighted(self, cost: f64) -> f64 {
        self.all as f64 + (cost - 1.0) * self.checking as f64
    }
}

/// Answers the questions of `task`, each in a new session.
fn passes(examined: &mut Examined, task: &str, proposer: &dyn Fn() -> Option<Box<dyn Proposer>>) -> Passes {
    let prompts = examined.prompts(task);
    assert_eq!(prompts.len(), 40);
    let mut passes = Passes::default();
    for prompt in prompts {
        let Stats { decode, speculated, .. } = examined.answer(&prompt, proposer()).stats;
        passes.all += decode.passes;
        passes.checking += speculated.passes;
    }
    passes
}

/// Without guesses, with ngram-simple's, with the automaton's at [`PASS_COST`].
fn compared(name: &str, task: &str) -> [Passes; 3] {
    let (mut examined, experience) = (Examined::new(name), Experience::new());
    let compared = [
        passes(&mut examined, task, &|| None),
        passes(&mut examined, task, &|| Some(ngram())),
        passes(&mut examined, task, &|| Some(suffix(&experience, PASS_COST))),
    ];
    let [plain, ngram, suffix] = compared;
    println!(
        "{name}, {task}: {} passes, {} by ngrams, {} by suffixes, worth {:.1}",
        plain.all,
        ngram.all,
        suffix.all,
        suffix.weighted(PASS_COST)
    );
    compared
}

#[test]
fn copied_code_takes_half_the_passes_by_ngrams_and_costs_a_third_by_suffixes() {
    for name in MODELS {
        let [plain, ngram, suffix] = compared(name, "code");
        assert!(plain.all >= 2 * ngram.all, "{name}: {plain:?} without guesses, {ngram:?} by ngrams");
        let cost = suffix.weighted(PASS_COST);
        assert!(plain.all as f64 >= 3.0 * cost, "{name}: {plain:?} without guesses, {suffix:?} by suffixes");
    }
}

#[test]
fn short_repeats_take_half_the_passes_by_suffixes_and_nearly_all_by_ngrams() {
    for name in MODELS {
        let [plain, ngram, suffix] = compared(name, "repeat");
        assert!(ngram.all <= plain.all && 10 * ngram.all >= 9 * plain.all, "{name}: {plain:?}, {ngram:?}");
        assert!(plain.all >= 2 * suffix.all, "{name}: {plain:?} without guesses, {suffix:?} by suffixes");
    }
}

#[test]
fn questions_that_cannot_profit_lose_less_than_a_hundredth_though_each_has_a_new_session() {
    for name in MODELS {
        let mut examined = Examined::new(name);
        for task in ["canned", "capital", "count", "recall", "json"] {
            let plain = passes(&mut examined, task, &|| None).all as f64;
            assert_eq!(passes(&mut examined, task, &|| Some(ngram())).weighted(3.0), plain);
            for cost in [PASS_COST, 3.0] {
                let experience = Experience::new();
                let guessed = passes(&mut examined, task, &|| Some(suffix(&experience, cost)));
                println!(
                    "{name}, {task}, at {cost}: {plain}, {} by suffixes, worth {:.1}",
                    guessed.all,
                    guessed.weighted(cost)
                );
                assert!(
                    guessed.weighted(cost) <= 1.01 * plain,
                    "{name}, {task}: {plain}, {guessed:?} at {cost}"
                );
            }
        }
    }
}

/// By how much the shape of a pass changes the log probability of a likeliest token at most.
const SHAPES_DIFFER: f32 = 0.02;

#[test]
fn sampled_answers_part_from_those_without_guesses_at_near_ties_of_the_random_number_only() {
    let (mut answers, mut parted, mut tokens, mut accepted) = (0, 0, 0, 0);
    for name in MODELS {
        let mut examined = Examined::new(name);
        let prompts = ["code", "repeat", "count"].map(|task| examined.prompts(task)).concat();
        for (temperature, seed) in [0.7, 1.5, 3.0].into_iter().flat_map(|t| [1, 2].map(|seed| (t, seed))) {
            for prompt in prompts.iter().step_by(8) {
                let sampling = Sampling { temperature, seed: Some(seed), ..Sampling::default() };
                // Guesses after any token that stood before, right or wrong.
                let eager = Box::new(NgramSimple::new(1, 8));
                let plain = examined.answer_with(&sampling, prompt, None);
                let guessed = examined.answer_with(&sampling, prompt, Some(eager));
                accepted += guessed.stats.speculated.accepted;
                answers += 1;
                let at = plain.parts_from(&guessed);
                parted += usize::from(at.is_some());
                tokens += at.unwrap_or(plain.tokens.len());
                for at in 0..at.map_or(plain.tokens.len(), |at| at + 1) {
                    let apart = (plain.likeliest[at] - guessed.likeliest[at]).abs();
                    assert!(apart < SHAPES_DIFFER, "{name} at {at}: {apart}, though all before is the same");
                }
            }
        }
    }
    println!(
        "{parted} of {answers} sampled answers part, {tokens} tokens are the same, {accepted} guesses right"
    );
    assert!(accepted > 1000, "{accepted}");
    assert!(parted * 250 <= tokens, "{parted} answers part within {tokens} tokens");
}

#[test]
fn greedy_answers_are_the_same_with_guesses_but_for_near_ties() {
    let (mut compared, mut near_ties) = (0, 0);
    for name in MODELS {
        let (mut examined, experience) = (Examined::new(name), Experience::new());
        for task in ["code", "repeat", "recall", "json", "count"] {
            for prompt in examined.prompts(task).iter().step_by(2) {
                let plain = examined.answer(prompt, None);
                let guessed = examined.answer(prompt, Some(suffix(&experience, PASS_COST)));
                compared += 1;
                if let Some(at) = plain.parts_from(&guessed) {
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
