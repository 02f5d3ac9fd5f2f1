//! Whole answers of the two small trained models, converted and run on the CPU, against transformers'.

use std::sync::atomic::AtomicBool;

use lone_convert::ConvertOptions;
use lone_engine::{Event, FinishReason, Generation, Request, Runtime, Session};
use lone_lfm::{SpecialText, Tokenizer};
use serde::Deserialize;

use crate::support::{MODELS, cosine, load, model, session};

/// Of 100 continuations, how many may differ: rounding decides between near ties.
const MOST_THAT_DIFFER: usize = 2;

/// How alike the same position's logits must be, whatever passes led there.
const LEAST_COSINE: f64 = 0.99999;

#[derive(Deserialize)]
struct Case {
    prompt_ids: Vec<u32>,
    continuation_ids: Vec<u32>,
}

fn cases(name: &str) -> Vec<Case> {
    serde_json::from_slice(&std::fs::read(model(name).join("greedy.json")).unwrap()).unwrap()
}

fn options() -> ConvertOptions {
    ConvertOptions { ctx: vec![256], prefill: vec![16], ..ConvertOptions::default() }
}

fn greedy(runtime: &Runtime, prompt: &[u32], max_new_tokens: usize) -> Request {
    let stop_tokens = runtime.facts().eos_token_ids.clone();
    Request { prompt: prompt.to_vec(), max_new_tokens, stop_tokens, ..Request::default() }
}

fn answer(runtime: &mut Runtime, session: &mut Session, request: Request) -> Generation {
    let mut generation = Generation::begin(runtime, session, None, request).unwrap();
    generation.run(runtime, session, &AtomicBool::new(false), &mut |_| ()).unwrap();
    generation
}

/// Answers the first `count` cases in one session and asserts that nearly all are transformers' answers.
fn check_continuations(name: &str, options: &ConvertOptions, count: usize) {
    let mut runtime = load(&model(name), options);
    let mut session = session(&runtime);
    let mut different = Vec::new();
    for (i, case) in cases(name).iter().take(count).enumerate() {
        let request = greedy(&runtime, &case.prompt_ids, case.continuation_ids.len() + 8);
        let generation = answer(&mut runtime, &mut session, request);
        if generation.token_ids() == case.continuation_ids {
            assert_eq!(generation.finish_reason(), Some(FinishReason::Stop), "{name}, case {i}");
        } else {
            different.push(i);
        }
    }
    let most = MOST_THAT_DIFFER * count / 100;
    assert!(different.len() <= most, "{name}: cases {different:?} of {count} differ, {most} may");
}

#[test]
fn greedy_answers_are_transformers_token_for_token() {
    for name in MODELS {
        check_continuations(name, &options(), 100);
    }
}

#[test]
fn bundles_with_one_function_a_chunk_answer_the_same() {
    for name in MODELS {
        check_continuations(name, &ConvertOptions { decode_only: true, ..options() }, 50);
        check_continuations(name, &ConvertOptions { prefill_only: true, ..options() }, 50);
    }
}

#[test]
fn a_conversation_that_grows_reads_only_what_is_new_and_is_where_one_begun_anew_would_be() {
    for name in MODELS {
        let mut runtime = load(&model(name), &ConvertOptions { ctx: vec![512], ..options() });
        let mut growing = session(&runtime);
        let mut history = Vec::new();
        for case in cases(name).iter().step_by(9).take(8) {
            // Of what was said before, only the last token was never run.
            let new = case.prompt_ids.len() + usize::from(!history.is_empty());
            history.extend(&case.prompt_ids);
            let before = growing.counters();
            growing.set_prompt(&mut runtime, &history).unwrap();
            assert_eq!(growing.counters().tokens - before.tokens, new);
            assert_eq!(growing.counters().passes - before.passes, new.div_ceil(16));
            let mut fresh = session(&runtime);
            fresh.set_prompt(&mut runtime, &history).unwrap();
            let cosine = cosine(growing.logits().unwrap(), fresh.logits().unwrap());
            assert!(cosine >= LEAST_COSINE, "{name}, {} tokens: {cosine}", history.len());
            let request = greedy(&runtime, &history, 40);
            history.extend(answer(&mut runtime, &mut growing, request).token_ids());
        }
        assert!(history.len() > 200, "rings have wrapped: {}", history.len());
    }
}

#[test]
fn rejected_tokens_change_not_one_bit_of_what_follows() {
    for name in MODELS {
        let mut runtime = load(&model(name), &ConvertOptions { spec_drafts: Some(4), ..options() });
        let tokens: Vec<u32> =
            cases(name).iter().flat_map(|case| case.prompt_ids.clone()).take(120).collect();
        let (mut plain, mut tried) = (session(&runtime), session(&runtime));
        for block in tokens.chunks_exact(3) {
            plain.pass(&mut runtime, block).unwrap().commit(3);
            let drafts = [block[0], block[1], block[2], 5, 9];
            tried.pass(&mut runtime, &drafts).unwrap().commit(3);
            let logits = [&mut plain, &mut tried].map(|session| {
                let mut logits = vec![0.0; 1536];
                session.pass(&mut runtime, &[44]).unwrap().logits(0..1, &mut logits).unwrap();
                logits
            });
            assert_eq!(logits[0], logits[1], "{name}, at {}", plain.position());
        }
    }
}

#[test]
fn text_streams_out_as_the_answer_decodes() {
    let name = "tiny-lfm3";
    let tokenizer = std::sync::Arc::new(Tokenizer::open(&model(name)).unwrap());
    let mut runtime = load(&model(name), &options());
    let mut session = session(&runtime);
    for case in cases(name).iter().take(20) {
        let request = greedy(&runtime, &case.prompt_ids, 60);
        let mut generation =
            Generation::begin(&runtime, &mut session, Some(tokenizer.clone()), request).unwrap();
        let mut text = String::new();
        let mut emit = |event| {
            if let Event::Text(piece) = event {
                text.push_str(&piece);
            }
        };
        generation.run(&mut runtime, &mut session, &AtomicBool::new(false), &mut emit).unwrap();
        let (last, said) = generation.token_ids().split_last().unwrap();
        assert_eq!(*last, 7, "the end of the turn");
        assert_eq!(text, tokenizer.decode(said, SpecialText::Keep));
    }
}
