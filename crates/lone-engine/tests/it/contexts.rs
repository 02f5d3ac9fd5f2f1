//! Long prompts and many rungs: the small trained model against its f32 reference, and real shapes at 32k and 128k.

use std::sync::atomic::AtomicBool;

use lone_convert::ConvertOptions;
use lone_engine::{Generation, Request, Runtime, SessionOptions};
use lone_lfm::{Checkpoint, Reference, SpecialText, Tokenizer};
use xtask::fake_checkpoint::{self, Model, Options, Preset};

use crate::support::{Asked, cosine, exam, load, model, session};

const MODEL: &str = "tiny-lfm3";

/// How alike logits must be after up to 8000 tokens in fp16.
const LEAST_COSINE: f64 = 0.9995;

/// The prompts of the exam, one after the other, as far as `count` tokens.
fn prompts(count: usize) -> Vec<u32> {
    let tokens: Vec<u32> = exam(MODEL).into_iter().flat_map(|asked| asked.prompt).take(count).collect();
    assert_eq!(tokens.len(), count);
    tokens
}

#[test]
fn a_prompt_of_8000_tokens_agrees_with_the_f32_reference_at_the_end_of_every_rung() {
    let tokens = prompts(8000);
    let rungs = vec![512, 2048, 4096, 8192];
    let options = ConvertOptions { ctx: rungs.clone(), prefill: vec![16, 256], ..ConvertOptions::default() };
    let mut runtime = load(&model(MODEL), &options);
    let mut session = session(&runtime);
    let ends = rungs.iter().filter(|rung| **rung < 8000);
    let positions: Vec<usize> =
        ends.flat_map(|rung| [rung - 1, *rung, rung + 1, rung + 20]).chain([8000]).collect();

    let checkpoint = Checkpoint::open(&model(MODEL)).unwrap();
    let reference = Reference::new(&checkpoint);
    let hidden = reference.hidden(&tokens, |_, _| ()).unwrap();
    let width = checkpoint.config().hidden_size;
    let rows: Vec<f32> = positions
        .iter()
        .flat_map(|position| &hidden[(position - 1) * width..position * width])
        .copied()
        .collect();
    reference.logits(&rows, |row, expected| {
        let position = positions[row];
        session.extend(&mut runtime, &tokens[session.position()..position]).unwrap();
        let smallest = rungs.iter().find(|rung| **rung >= position).unwrap();
        assert_eq!(session.rung(), *smallest, "at {position}");
        let cosine = cosine(session.logits().unwrap(), expected);
        assert!(cosine >= LEAST_COSINE, "at {position}: {cosine}");
    });
    assert_eq!(session.position(), 8000);
}

#[test]
fn what_was_said_on_a_lower_rung_is_recalled_on_a_higher_one() {
    let rungs = vec![16, 24, 32, 48, 64, 256];
    let options = ConvertOptions { ctx: rungs, prefill: vec![8], ..ConvertOptions::default() };
    let mut runtime = load(&model(MODEL), &options);
    let tokenizer = Tokenizer::open(&model(MODEL)).unwrap();
    let (mut right, mut climbed) = (0, 0);
    let recall: Vec<_> = exam(MODEL).into_iter().filter(|asked| asked.task == "recall").collect();
    assert_eq!(recall.len(), 40);
    for asked in recall {
        let mut session = session(&runtime);
        let stop_tokens = runtime.facts().eos_token_ids.clone();
        let request = Request { prompt: asked.prompt, stop_tokens, max_new_tokens: 40, ..Request::default() };
        let mut generation = Generation::begin(&runtime, &mut session, None, request).unwrap();
        generation.run(&mut runtime, &mut session, &AtomicBool::new(false), &mut |_| ()).unwrap();
        let (_, said) = generation.token_ids().split_last().unwrap();
        right += usize::from(tokenizer.decode(said, SpecialText::Keep) == asked.answer);
        climbed += usize::from(session.rung() > 16);
    }
    assert_eq!((right, climbed), (40, 40));
}

/// The exam's questions, each with its answer, as turns of one conversation of about `count` tokens.
fn conversation(tokenizer: &Tokenizer, count: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    for Asked { prompt, answer, .. } in exam(MODEL).into_iter().filter(|asked| asked.task != "recall") {
        if tokens.len() >= count {
            break;
        }
        // One beginning of a text is enough.
        tokens.extend(&prompt[usize::from(!tokens.is_empty())..]);
        tokens.extend(tokenizer.encode(&format!("{answer}<|im_end|>\n")).unwrap());
    }
    tokens
}

/// What is said, in one session, to each of `questions` after `history`.
fn answers(runtime: &mut Runtime, history: &[u32], questions: &[Asked]) -> (Vec<Vec<u32>>, usize) {
    let mut session = session(runtime);
    let mut answers = Vec::new();
    for Asked { prompt, .. } in questions {
        let request = Request {
            prompt: [history, &prompt[usize::from(!history.is_empty())..]].concat(),
            stop_tokens: runtime.facts().eos_token_ids.clone(),
            max_new_tokens: 40,
            ..Request::default()
        };
        let mut generation = Generation::begin(runtime, &mut session, None, request).unwrap();
        generation.run(runtime, &mut session, &AtomicBool::new(false), &mut |_| ()).unwrap();
        answers.push(generation.token_ids().to_vec());
    }
    (answers, session.rung())
}

#[test]
fn behind_thousands_of_tokens_as_much_is_recalled_after_climbing_as_where_no_rung_was_climbed() {
    let options = |ctx| ConvertOptions { ctx, prefill: vec![16, 256], ..ConvertOptions::default() };
    let mut ladder = load(&model(MODEL), &options(vec![512, 2048, 8192]));
    let mut single = load(&model(MODEL), &options(vec![8192]));
    let tokenizer = Tokenizer::open(&model(MODEL)).unwrap();
    let questions: Vec<Asked> =
        exam(MODEL).into_iter().filter(|asked| asked.task == "recall").take(10).collect();
    // The model has never seen a long text, and finds less the further it goes.
    for (before, rung, least) in [(200, 512, 9), (800, 2048, 6), (3200, 8192, 4)] {
        let history = conversation(&tokenizer, before);
        let (climbed, reached) = answers(&mut ladder, &history, &questions);
        let (expected, _) = answers(&mut single, &history, &questions);
        assert_eq!(reached, rung, "behind {before} tokens");
        let is_right = |(said, asked): (&Vec<u32>, &Asked)| {
            let said = tokenizer.decode(said, SpecialText::Keep);
            said.strip_suffix("<|im_end|>") == Some(asked.answer.as_str())
        };
        let right = climbed.iter().zip(&questions).filter(|pair| is_right(*pair)).count();
        let same = climbed.iter().zip(&expected).filter(|(a, b)| a == b).count();
        println!("behind {before} tokens: {right} of 10 right, {same} as on one rung");
        assert!(same >= 9 && right >= least, "behind {before} tokens: {right} right, {same} the same");
    }
}

#[test]
fn a_prompt_of_255_tokens_is_four_passes_of_64() {
    let prompt = prompts(255);
    let mut runtime =
        load(&model(MODEL), &ConvertOptions { ctx: vec![64, 512], ..ConvertOptions::default() });
    let mut session = session(&runtime);
    session.set_prompt(&mut runtime, &prompt).unwrap();
    let counters = session.counters();
    assert_eq!((counters.passes, counters.tokens), (4, 255));
}

/// LFM3-1.7B's caches behind layers that are otherwise small.
fn lfm3_caches() -> Model {
    Model { hidden: 64, ffn: 64, vocab: 300, ..Preset::Lfm3_1_7b.model() }
}

#[test]
fn contexts_of_32k_and_128k_load_and_take_what_the_architecture_says() {
    let checkpoint = tempfile::tempdir().unwrap();
    let options = Options { tokenizer: false, ..Options::new(lfm3_caches()) };
    fake_checkpoint::write(checkpoint.path(), &options).unwrap();
    let rungs = [2048, 32_768, 131_072];
    let options = ConvertOptions { ctx: rungs.to_vec(), prefill: vec![16], ..ConvertOptions::default() };
    let mut runtime = load(checkpoint.path(), &options);
    // 6 layers of full attention, 5 rings of 256 rows, keys and values of 4 heads of 128; 13 windows of 6 inputs.
    let bytes = |ctx: u64| 2 * ((6 * ctx + 5 * 256) * 2 * 4 * 128 + 13 * 6 * 64);
    for ctx in rungs {
        let options = SessionOptions { ctx: Some(ctx), ..SessionOptions::default() };
        let mut session = runtime.session(&options).unwrap();
        assert_eq!((session.ctx(), session.rung(), session.cache_bytes()), (ctx, 2048, bytes(2048)));
        let budget = Some(bytes(ctx as u64) - 1);
        let refused = runtime.session(&SessionOptions { kv_budget_bytes: budget, ..options });
        assert!(refused.map_or(0, |session| session.ctx()) < ctx);
        session.extend(&mut runtime, &[1, 2, 3]).unwrap();
    }
    let mut session = session(&runtime);
    let prompt: Vec<u32> = (0..2064).map(|i| i % 300).collect();
    session.extend(&mut runtime, &prompt).unwrap();
    assert_eq!((session.rung(), session.cache_bytes()), (32_768, bytes(32_768)));
}
