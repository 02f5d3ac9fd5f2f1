//! Answers of the fake model, whose likeliest continuation is known.

use std::path::Path;

use super::*;
use crate::fake::{FakeBackend, Spec, bundle, reference};
use crate::{Counters, LoadOptions, Sampling, SessionOptions};

const PROMPT: [u32; 13] = [1, 6, 3, 0, 2, 9, 4, 4, 8, 10, 5, 3, 1];

fn start() -> (Runtime, Session) {
    let runtime = Spec::default().load();
    let session = runtime.session(&SessionOptions::default()).unwrap();
    (runtime, session)
}

fn request(max_new_tokens: usize) -> Request {
    Request { prompt: PROMPT.to_vec(), max_new_tokens, ..Request::default() }
}

/// The likeliest `count` tokens after `prompt`, one whole computation a token.
fn likeliest(prompt: &[u32], count: usize) -> Vec<u32> {
    let mut tokens = prompt.to_vec();
    for _ in 0..count {
        let logits = reference(&tokens, Spec::default().window).pop().unwrap();
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        tokens.push(logits.iter().position(|&logit| logit == max).unwrap() as u32);
    }
    tokens.split_off(prompt.len())
}

fn answer(runtime: &mut Runtime, session: &mut Session, request: Request) -> (Generation, Vec<Event>) {
    let mut generation = Generation::begin(runtime, session, None, request).unwrap();
    let mut events = Vec::new();
    generation.run(runtime, session, &AtomicBool::new(false), &mut |event| events.push(event)).unwrap();
    (generation, events)
}

#[test]
fn a_greedy_answer_is_the_likeliest_continuation_and_is_counted() {
    let (mut runtime, mut session) = start();
    let (generation, events) = answer(&mut runtime, &mut session, request(6));
    assert_eq!(generation.token_ids(), likeliest(&PROMPT, 6));
    assert_eq!(events.len(), 7);
    assert_eq!(events[6], Event::Done(FinishReason::Length));
    let stats = generation.stats();
    assert_eq!((stats.prefill.tokens, stats.prefill.passes), (13, 2));
    assert_eq!((stats.decode.tokens, stats.decode.passes), (5, 5));
    assert!(stats.prefill.tokens_per_second() > 0.0 && stats.decode.tokens_per_second() > 0.0);
}

#[test]
fn a_stop_token_ends_the_answer_and_is_its_last_token() {
    let (mut runtime, mut session) = start();
    let expected = likeliest(&PROMPT, 8);
    let last = *expected.iter().find(|&&token| token != expected[0]).unwrap();
    let count = expected.iter().position(|&token| token == last).unwrap() + 1;
    let request = Request { stop_tokens: vec![last], ..request(8) };
    let (generation, _) = answer(&mut runtime, &mut session, request);
    assert_eq!(generation.token_ids(), &expected[..count]);
    assert_eq!(generation.finish_reason(), Some(FinishReason::Stop));
}

#[test]
fn the_context_ends_an_answer_by_length_with_one_token_that_needs_no_row() {
    let (mut runtime, mut session) = start();
    let (generation, _) = answer(&mut runtime, &mut session, request(1000));
    assert_eq!(generation.finish_reason(), Some(FinishReason::Length));
    assert_eq!(session.remaining(), 0);
    assert_eq!(generation.token_ids(), likeliest(&PROMPT, 40 - 13 + 1));
}

#[test]
fn the_next_turn_reads_only_what_is_new() {
    let (mut runtime, mut session) = start();
    let (first, _) = answer(&mut runtime, &mut session, request(5));
    let prompt = [&PROMPT[..], first.token_ids(), &[7, 2, 2]].concat();
    let (second, _) = answer(&mut runtime, &mut session, Request { prompt: prompt.clone(), ..request(5) });
    assert_eq!(second.token_ids(), likeliest(&prompt, 5));
    let stats = second.stats();
    // The last token of the first answer was chosen and never run.
    assert_eq!((stats.reused_tokens, stats.prefill.tokens, stats.prefill.passes), (17, 4, 1));
}

#[test]
fn asking_again_reads_nothing() {
    let (mut runtime, mut session) = start();
    let (first, _) = answer(&mut runtime, &mut session, request(5));
    let (again, _) = answer(&mut runtime, &mut session, request(5));
    assert_eq!(first.token_ids(), again.token_ids());
    assert_eq!((again.stats().prefill.passes, again.stats().reused_tokens), (0, 13));
}

#[test]
fn cancelling_ends_the_answer_before_the_next_pass() {
    let (mut runtime, mut session) = start();
    let mut generation = Generation::begin(&runtime, &mut session, None, request(20)).unwrap();
    let cancelled = AtomicBool::new(false);
    let mut events = Vec::new();
    let mut emit = |event| {
        cancelled.store(events.len() == 2, Ordering::Relaxed);
        events.push(event);
    };
    let reason = generation.run(&mut runtime, &mut session, &cancelled, &mut emit).unwrap();
    assert_eq!(reason, FinishReason::Cancelled);
    assert_eq!(events.len(), 4);
    assert_eq!(generation.token_ids(), likeliest(&PROMPT, 3));
    generation.step(&mut runtime, &mut session, &mut |_| panic!("it is over")).unwrap();
}

#[test]
fn no_tokens_asked_for_is_a_prefill_alone() {
    let (mut runtime, mut session) = start();
    let (generation, events) = answer(&mut runtime, &mut session, request(0));
    assert_eq!(events, [Event::Done(FinishReason::Length)]);
    assert_eq!(generation.stats().prefill.tokens, 13);
    assert_eq!(session.counters(), Counters { passes: 2, tokens: 13 });
}

#[test]
fn interleaved_answers_are_what_they_are_alone() {
    let (mut runtime, mut one) = start();
    let mut other = runtime.session(&SessionOptions::default()).unwrap();
    let prompts = [PROMPT.to_vec(), vec![1, 2, 3]];
    let mut generations = [(&mut one, &prompts[0]), (&mut other, &prompts[1])].map(|(session, prompt)| {
        let request = Request { prompt: prompt.clone(), ..request(9) };
        (Generation::begin(&runtime, session, None, request).unwrap(), session)
    });
    while generations.iter().any(|(generation, _)| generation.finish_reason().is_none()) {
        for (generation, session) in &mut generations {
            generation.step(&mut runtime, session, &mut |_| ()).unwrap();
        }
    }
    for ((generation, _), prompt) in generations.iter().zip(&prompts) {
        assert_eq!(generation.token_ids(), likeliest(prompt, 9));
    }
}

#[test]
fn a_pass_that_failed_changed_nothing_and_can_be_tried_again() {
    let spec = Spec::default();
    let directory = spec.write();
    let backend = FakeBackend::new(bundle(&spec));
    let mut runtime = Runtime::load(directory.path(), &backend, &LoadOptions::default()).unwrap();
    let mut session = runtime.session(&SessionOptions::default()).unwrap();
    let mut generation = Generation::begin(&runtime, &mut session, None, request(5)).unwrap();
    while generation.finish_reason().is_none() {
        backend.failure().store(true, Ordering::Relaxed);
        let error = generation.step(&mut runtime, &mut session, &mut |_| panic!("nothing came of it"));
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("c0: ") && message.ends_with(" failed: told to"), "{message}");
        generation.step(&mut runtime, &mut session, &mut |_| ()).unwrap();
    }
    assert_eq!(generation.token_ids(), likeliest(&PROMPT, 5));
}

#[test]
fn log_probabilities_come_with_each_token() {
    let (mut runtime, mut session) = start();
    let (generation, events) =
        answer(&mut runtime, &mut session, Request { logprobs: Some(3), ..request(2) });
    for (event, id) in events.iter().zip(generation.token_ids()) {
        let Event::Token { logprobs: Some(logprobs), .. } = event else { panic!("{event:?}") };
        assert_eq!(logprobs.top.len(), 3);
        assert_eq!(logprobs.top[0], (*id, logprobs.chosen));
    }
}

#[test]
fn text_ends_before_a_stop_string_that_spans_tokens() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny-lfm3");
    let tokenizer = Arc::new(Tokenizer::open(&models).unwrap());
    let tokens = likeliest(&PROMPT, 8);
    let text = tokenizer.decode(&tokens, SpecialText::Keep);
    let pieces: Vec<_> = tokens.iter().map(|&token| tokenizer.decode(&[token], SpecialText::Keep)).collect();
    // From the middle of the second token to the middle of the third.
    let start = pieces[0].len() + pieces[1].len() - 2;
    let stop = text[start..start + 5].to_owned();
    let start = text.find(&stop).unwrap();
    for (stop, expected, reason) in [
        (vec![stop], &text[..start], FinishReason::Stop),
        (vec!["nowhere".into(), text.clone() + "!"], &text[..], FinishReason::Length),
    ] {
        let (mut runtime, mut session) = self::start();
        let request = Request { stop, ..request(8) };
        let mut generation =
            Generation::begin(&runtime, &mut session, Some(tokenizer.clone()), request).unwrap();
        let mut streamed = String::new();
        let mut emit = |event| {
            if let Event::Text(piece) = event {
                assert!(!piece.is_empty());
                streamed.push_str(&piece);
            }
        };
        let found = generation.run(&mut runtime, &mut session, &AtomicBool::new(false), &mut emit).unwrap();
        assert_eq!((&streamed[..], found), (expected, reason));
    }
}

#[test]
fn a_refused_request_leaves_the_session_as_it_was() {
    let (mut runtime, mut session) = start();
    session.set_prompt(&mut runtime, &PROMPT).unwrap();
    let greedy = Sampling::default;
    let requests = [
        (Request { prompt: vec![1; 41], ..request(1) }, "the prompt has 41 tokens, and the context holds 40"),
        (Request { prompt: vec![], ..request(1) }, "the prompt is empty"),
        (Request { prompt: vec![11], ..request(1) }, "token 0 is 11, and the vocabulary has 11 entries"),
        (
            Request { sampling: Sampling { top_p: 2.0, ..greedy() }, ..request(1) },
            "top_p is 2, and must be from 0 to 1",
        ),
        (
            Request { stop: vec!["x".into()], ..request(1) },
            "stop strings need a tokenizer, and the bundle has none",
        ),
        (Request { stop: vec!["".into()], ..request(1) }, "a stop string is empty"),
    ];
    for (request, expected) in requests {
        let error = Generation::begin(&runtime, &mut session, None, request).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(session.tokens(), PROMPT);
    assert!(session.logits().is_some());
}

#[test]
fn a_raw_prompt_begins_with_one_bos_token() {
    let runtime = Spec::default().load();
    assert_eq!(raw_prompt(runtime.facts(), vec![5, 6]), [1, 5, 6]);
    assert_eq!(raw_prompt(runtime.facts(), vec![1, 5]), [1, 5]);
    assert_eq!(raw_prompt(runtime.facts(), vec![]), [1]);
}
