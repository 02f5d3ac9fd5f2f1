//! Bundles, run by the reference interpreter, against what transformers says of the checkpoints.

use lone_bundle::Role;
use lone_convert::{ConvertOptions, Note};
use lone_engine::{LoadOptions, Runtime, SessionOptions};
use lone_lfm::{Checkpoint, Reference};
use lone_mil::{Backend, Interpreter};

use crate::support::{
    Converted, MODELS, all_functions, convert_checkpoint, converted, model_dir, overwrite, wide_models,
    write_fake,
};

/// The least cosine between a bundle's logits and those of the checkpoint in f32.
const MIN_COSINE: f64 = 0.9999;
/// The least cosine between the logits of two shapes of one bundle. With another kind of cache, keys lie in another
/// order, sums round otherwise, and only [`MIN_COSINE`] is asked for.
const MIN_SHAPE_COSINE: f64 = 0.999_99;
/// Top-2 margins below this are ties in fp16.
const TIE: f32 = 0.05;

/// Logits after each of `tokens`, by passes of `role`.
fn logits(bundle: &Converted, role: Role, tokens: &[u32]) -> Vec<Vec<f32>> {
    logits_on(&Interpreter::<lone_mil::Reference>::new(), bundle, role, tokens)
}

/// The same on another backend.
pub(crate) fn logits_on(
    backend: &dyn Backend,
    bundle: &Converted,
    role: Role,
    tokens: &[u32],
) -> Vec<Vec<f32>> {
    let mut runtime = Runtime::load(&bundle.dir(), backend, &LoadOptions::default()).unwrap();
    let mut session = runtime.session(&SessionOptions::default()).unwrap();
    let mut rows = Vec::new();
    let observe = |observed: &lone_engine::Observed<'_>| rows.push(observed.logits.to_vec());
    session.observe(&mut runtime, Some(role), tokens, observe).unwrap();
    rows
}

/// Tokens of a golden, and the logits after some of them.
pub(crate) struct Golden {
    pub(crate) tokens: Vec<u32>,
    rows: Vec<(usize, Vec<f32>)>,
}

impl Golden {
    pub(crate) fn open(model: &str) -> Golden {
        let bytes = std::fs::read(model_dir(model).join("golden.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let words = |name| file.tensor(name).map(|view| view.data().as_chunks::<4>().0.to_vec());
        let ints = |words: Vec<[u8; 4]>| words.into_iter().map(u32::from_le_bytes).collect::<Vec<_>>();
        let tokens = ints(words("tokens").unwrap());
        let all = || (0..tokens.len() as u32).collect();
        let positions: Vec<u32> = words("positions").map_or_else(|_| all(), ints);
        let logits: Vec<f32> = words("logits").unwrap().into_iter().map(f32::from_le_bytes).collect();
        let vocab_size = logits.len() / positions.len();
        let rows =
            positions.iter().map(|&at| at as usize).zip(logits.chunks(vocab_size).map(<[f32]>::to_vec));
        Golden { rows: rows.collect(), tokens }
    }

    /// The same without what comes after the first `tokens` tokens.
    pub(crate) fn first(mut self, tokens: usize) -> Golden {
        self.tokens.truncate(tokens);
        self.rows.retain(|(at, _)| *at < tokens);
        self
    }

    pub(crate) fn check(&self, min_cosine: f64, what: &str, found: &[Vec<f32>]) {
        for (at, expected) in &self.rows {
            let similarity = cosine(&found[*at], expected);
            assert!(similarity >= min_cosine, "{what}: cosine {similarity} at position {at}");
            let (best, margin) = top(expected);
            assert!(margin <= TIE || top(&found[*at]).0 == best, "{what}: another best token at {at}");
        }
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The best token, and how far it is ahead.
fn top(logits: &[f32]) -> (usize, f32) {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    (order[0], logits[order[0]] - logits[order[1]])
}

pub(crate) fn least_cosine(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    a.iter().zip(b).map(|(a, b)| cosine(a, b)).fold(1.0, f64::min)
}

#[test]
fn every_shape_of_every_model_says_what_transformers_says() {
    for model in MODELS {
        let golden = Golden::open(model).first(130);
        let options = ConvertOptions { ctx: vec![golden.tokens.len()], ..all_functions() };
        let bundle = converted(model, &options);
        let [decode, prefill, verify] = [Role::Decode, Role::Prefill, Role::Verify].map(|role| {
            let found = logits(&bundle, role, &golden.tokens);
            golden.check(MIN_COSINE, &format!("{model}, {role:?}"), &found);
            found
        });
        for other in [prefill, verify] {
            let similarity = least_cosine(&decode, &other);
            assert!(similarity >= MIN_SHAPE_COSINE, "{model}: cosine {similarity} between shapes");
        }
    }
}

#[test]
fn rings_that_wrapped_many_times_and_plain_caches_agree_with_transformers() {
    for (model, prefill) in [("micro/lfm3-window8", 3), ("tiny-lfm3", 40)] {
        let golden = Golden::open(model);
        let ring = ConvertOptions {
            ctx: vec![golden.tokens.len()],
            prefill: vec![prefill],
            ..ConvertOptions::default()
        };
        let plain = ConvertOptions { ring: false, ..ring.clone() };
        let [ring, plain] = [ring, plain].map(|options| {
            let found = logits(&converted(model, &options), Role::Prefill, &golden.tokens);
            golden.check(MIN_COSINE, &format!("{model}, ring {}", options.ring), &found);
            found
        });
        let similarity = least_cosine(&ring, &plain);
        assert!(similarity >= MIN_COSINE, "{model}: cosine {similarity} between caches");
    }
}

#[test]
fn the_naive_graphs_are_the_same_model() {
    let golden = Golden::open("micro/lfm3-window8");
    let options = ConvertOptions {
        precision_rules: false,
        ctx: vec![48],
        prefill: vec![16],
        ..ConvertOptions::default()
    };
    let found = logits(&converted("micro/lfm3-window8", &options), Role::Prefill, &golden.tokens);
    golden.check(MIN_COSINE, "naive", &found);
}

pub(crate) fn reference_logits(checkpoint: &Checkpoint, tokens: &[u32]) -> Vec<Vec<f32>> {
    let reference = Reference::new(checkpoint);
    let hidden = reference.hidden(tokens, |_, _| {}).unwrap();
    let mut rows = Vec::new();
    reference.logits(&hidden, |_, row| rows.push(row.to_vec()));
    rows
}

#[test]
fn split_and_scaled_reductions_sum_to_what_the_whole_ones_do() {
    for model in wide_models() {
        let dir = write_fake(model);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        let tokens: Vec<u32> = (0..20).map(|i| i * 13 % 300).collect();
        let options = ConvertOptions { ctx: vec![32], prefill: vec![7], ..ConvertOptions::default() };
        let bundle = convert_checkpoint(&checkpoint, &options);
        let found = logits(&bundle, Role::Prefill, &tokens);
        let expected = reference_logits(&checkpoint, &tokens);
        let similarity = least_cosine(&found, &expected);
        assert!(similarity >= MIN_COSINE, "{}: cosine {similarity}", checkpoint.config().hidden_size);
    }
}

#[test]
fn a_weight_that_scaling_would_overflow_stays_as_it_is_with_a_note() {
    let [model, _] = wide_models();
    let dir = write_fake(model);
    let tensor = "model.layers.0.conv.out_proj.weight";
    overwrite(dir.path(), tensor, &[4094.0, -4112.0]);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let bundle = convert_checkpoint(
        &checkpoint,
        &ConvertOptions { ctx: vec![8], prefill: vec![4], ..ConvertOptions::default() },
    );
    assert_eq!(bundle.notes, [Note::Unscaled { tensor: tensor.into() }, Note::NoTokenizer]);
    let tokens = [5, 280, 17];
    let found = logits(&bundle, Role::Decode, &tokens);
    let similarity = least_cosine(&found, &reference_logits(&checkpoint, &tokens));
    assert!(similarity >= MIN_COSINE, "cosine {similarity}");
}
