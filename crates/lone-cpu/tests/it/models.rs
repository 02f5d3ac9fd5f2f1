//! Whole models: checkpoints converted, their bundles run here, against transformers' logits and hidden states.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use lone_bundle::Role;
use lone_convert::{ConvertOptions, WeightPrecision, convert};
use lone_cpu::{CpuBackend, CpuOptions, Isa};
use lone_engine::{LoadOptions, Runtime, SessionOptions};
use lone_lfm::Checkpoint;
use lone_mil::{Backend, Interpreter, Reference};
use safetensors::SafeTensors;
use tempfile::TempDir;

const MODELS: [&str; 6] = [
    "tiny-lfm2",
    "tiny-lfm3",
    "micro/lfm2-old-config",
    "micro/lfm2-untied-bias-f32",
    "micro/lfm3-plain-sharded-f16",
    "micro/lfm3-window8",
];

/// Within this margin of the likeliest token, rounding may decide which comes first.
const NEAR_TIE: f32 = 0.05;
/// Least cosine of logits and hidden states with transformers'.
const LEAST_COSINE: f64 = 0.9999;
/// Least cosine of the logits of rounded weights and activations with the exact ones.
const LEAST_COSINE_ROUNDED: f64 = 0.99999;
/// Least cosine of the logits of one shape of pass with those of another.
const LEAST_COSINE_OF_SHAPES: f64 = 0.99999;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

/// A bundle of `name` in a directory of its own.
pub(crate) fn bundle(name: &str, options: &ConvertOptions) -> TempDir {
    let (directory, checkpoint) = (TempDir::new().unwrap(), Checkpoint::open(&model(name)).unwrap());
    convert(&checkpoint, &directory.path().join("bundle"), options, &mut ()).unwrap();
    directory
}

fn cpu(fuse: bool) -> CpuBackend {
    CpuBackend::new(CpuOptions { threads: NonZeroUsize::new(2), fuse, ..CpuOptions::default() })
}

/// What a bundle makes of tokens, position by position.
#[derive(Default)]
struct Observation {
    logits: Vec<Vec<f32>>,
    /// By layer: its output; the last one's is after the final norm.
    hidden: Vec<Vec<Vec<f32>>>,
}

fn observe(bundle: &TempDir, backend: &dyn Backend, role: Role, tokens: &[u32]) -> Observation {
    let options = LoadOptions { roles: vec![role], keep_layer_outputs: true, ..LoadOptions::default() };
    let mut runtime = Runtime::load(&bundle.path().join("bundle"), backend, &options).unwrap();
    let mut session = runtime.session(&SessionOptions::default()).unwrap();
    let mut seen = Observation::default();
    let layers = runtime.facts().layers.len();
    session
        .observe(&mut runtime, Some(role), tokens, |observed| {
            seen.logits.push(observed.logits.to_vec());
            let mut hidden = vec![observed.embedding()];
            hidden.extend((0..layers - 1).filter_map(|layer| observed.layer(layer)));
            hidden.push(observed.final_hidden());
            seen.hidden.push(hidden);
        })
        .unwrap();
    seen
}

/// golden.safetensors, decoded.
struct Golden {
    tokens: Vec<u32>,
    /// Positions that rows belong to.
    positions: Vec<usize>,
    /// `hidden.0`, …, a row each position.
    hidden: Vec<Vec<f32>>,
    logits: Vec<f32>,
}

impl Golden {
    fn open(name: &str) -> Self {
        let bytes = std::fs::read(model(name).join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let words = |name: &str| {
            let tensor = file.tensor(name).ok()?;
            let words = tensor.data().as_chunks::<4>().0;
            Some(words.to_vec())
        };
        let floats = |name: &str| Some(words(name)?.into_iter().map(f32::from_le_bytes).collect::<Vec<_>>());
        let indices = |name: &str| Some(words(name)?.into_iter().map(u32::from_le_bytes).collect::<Vec<_>>());
        let tokens = indices("tokens").unwrap();
        let positions = indices("positions").unwrap_or_else(|| (0..tokens.len() as u32).collect());
        Golden {
            tokens,
            positions: positions.into_iter().map(|position| position as usize).collect(),
            hidden: (0..).map_while(|stage| floats(&format!("hidden.{stage}"))).collect(),
            logits: floats("logits").unwrap(),
        }
    }

    /// Row `row` of a matrix with one row a position.
    fn row<'a>(&self, matrix: &'a [f32], row: usize) -> &'a [f32] {
        let width = matrix.len() / self.positions.len();
        &matrix[row * width..][..width]
    }

    /// Asserts that `seen` is what transformers saw.
    fn check(&self, seen: &Observation, what: &str) {
        for (row, &position) in self.positions.iter().enumerate() {
            let expected = self.row(&self.logits, row);
            let found = &seen.logits[position];
            let at = format!("{what}, position {position}");
            assert_cosine(found, expected, LEAST_COSINE, &format!("{at}: logits"));
            let (first, margin) = likeliest(expected);
            assert!(margin <= NEAR_TIE || likeliest(found).0 == first, "{at}: another token is likeliest");
            assert_eq!(seen.hidden[position].len(), self.hidden.len(), "{at}: as many stages");
            for (stage, (found, expected)) in seen.hidden[position].iter().zip(&self.hidden).enumerate() {
                let expected = self.row(expected, row);
                assert_cosine(found, expected, LEAST_COSINE, &format!("{at}: hidden.{stage}"));
            }
        }
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn assert_cosine(found: &[f32], expected: &[f32], least: f64, what: &str) {
    let cosine = cosine(found, expected);
    assert!(cosine >= least, "{what}: cosine {cosine} is less than {least}");
}

/// The largest logit's index, and how far ahead of the second it is.
fn likeliest(logits: &[f32]) -> (usize, f32) {
    let first = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
    let others = logits.iter().enumerate().filter(|&(i, _)| i != first).map(|(_, &logit)| logit);
    (first, logits[first] - others.fold(f32::NEG_INFINITY, f32::max))
}

fn assert_same_logits(one: &Observation, other: &Observation, what: &str) {
    for (position, (one, other)) in one.logits.iter().zip(&other.logits).enumerate() {
        assert_cosine(one, other, LEAST_COSINE_OF_SHAPES, &format!("{what}, position {position}"));
    }
}

/// Short passes of odd lengths and several packages, so that little lines up by chance.
pub(crate) fn options() -> ConvertOptions {
    ConvertOptions {
        ctx: vec![640],
        prefill: vec![28],
        spec_drafts: Some(4),
        layers_per_model: 3,
        head_chunks: 2,
        ..ConvertOptions::default()
    }
}

#[test]
fn every_shape_of_pass_repeats_transformers() {
    for name in MODELS {
        let (bundle, golden) = (bundle(name, &options()), Golden::open(name));
        let decoded = observe(&bundle, &cpu(true), Role::Decode, &golden.tokens);
        golden.check(&decoded, &format!("{name}, decode"));
        for role in [Role::Prefill, Role::Verify] {
            let seen = observe(&bundle, &cpu(true), role, &golden.tokens);
            golden.check(&seen, &format!("{name}, {role:?}"));
            assert_same_logits(&seen, &decoded, &format!("{name}, {role:?} and decode"));
        }
    }
}

#[test]
fn rings_and_whole_caches_give_the_same() {
    for name in ["tiny-lfm3", "micro/lfm3-window8"] {
        let tokens = Golden::open(name).tokens;
        for role in [Role::Decode, Role::Prefill] {
            let [ring, whole] = [true, false].map(|ring| {
                let bundle = bundle(name, &ConvertOptions { ring, ..options() });
                observe(&bundle, &cpu(true), role, &tokens)
            });
            assert_same_logits(&ring, &whole, &format!("{name}, {role:?}, ring and whole cache"));
        }
    }
}

#[test]
fn a_context_in_segments_is_attended_to_as_one() {
    let name = "micro/lfm2-old-config";
    let options = ConvertOptions { ctx: vec![40_000], spec_drafts: None, ..options() };
    let (bundle, golden) = (bundle(name, &options), Golden::open(name));
    let chunk =
        cpu(true).open(&bundle.path().join("bundle/chunk_00.mlpackage"), &Default::default()).unwrap();
    for role in [Role::Decode, Role::Prefill] {
        golden.check(&observe(&bundle, &cpu(true), role, &golden.tokens), &format!("{name}, {role:?}"));
    }
    for function in ["decode", "prefill"] {
        let plan = chunk.plan(function).unwrap();
        assert!(plan.kinds().any(|kind| kind == "attention") && plan.kinds().all(|kind| kind != "softmax"));
        assert!(plan.to_string().contains("k_1_s2"), "three segments: {plan}");
    }
}

#[test]
fn graphs_without_precision_rules_give_the_same() {
    for name in ["tiny-lfm2", "micro/lfm3-plain-sharded-f16"] {
        let golden = Golden::open(name);
        let bundle = bundle(name, &ConvertOptions { precision_rules: false, ..options() });
        golden.check(&observe(&bundle, &cpu(true), Role::Prefill, &golden.tokens), name);
    }
}

#[test]
fn fusing_changes_nothing() {
    for name in ["tiny-lfm3", "micro/lfm2-untied-bias-f32"] {
        let (bundle, tokens) = (bundle(name, &options()), Golden::open(name).tokens);
        for (role, count) in [(Role::Decode, 40), (Role::Prefill, 48)] {
            let [fused, unfused] =
                [true, false].map(|fuse| observe(&bundle, &cpu(fuse), role, &tokens[..count]));
            assert_same_logits(&fused, &unfused, &format!("{name}, {role:?}, fused and not"));
        }
    }
}

#[test]
fn the_interpreter_gives_the_same_within_fp16() {
    for name in ["micro/lfm3-window8", "micro/lfm2-old-config"] {
        let (bundle, tokens) = (bundle(name, &options()), Golden::open(name).tokens);
        let ours = observe(&bundle, &cpu(true), Role::Verify, &tokens);
        let theirs = observe(&bundle, &Interpreter::<Reference>::new(), Role::Verify, &tokens);
        for (position, (ours, theirs)) in ours.logits.iter().zip(&theirs.logits).enumerate() {
            assert_cosine(ours, theirs, LEAST_COSINE, &format!("{name}, position {position}"));
        }
    }
}

#[test]
fn palettized_weights_stay_indices_and_give_what_the_interpreter_gives() {
    let tokens = Golden::open("tiny-lfm3").tokens;
    for precision in [WeightPrecision::Lut8, WeightPrecision::Lut6, WeightPrecision::Lut4] {
        let bundle = bundle("tiny-lfm3", &ConvertOptions { precision, ..options() });
        for (role, count) in [(Role::Decode, 3), (Role::Verify, 10)] {
            let what = format!("{precision}, {role:?}");
            let ours = observe(&bundle, &cpu(true), role, &tokens[..count]);
            let theirs = observe(&bundle, &Interpreter::<Reference>::new(), role, &tokens[..count]);
            for (ours, theirs) in ours.logits.iter().zip(&theirs.logits) {
                assert_cosine(ours, theirs, LEAST_COSINE, &what);
            }
        }
        let package = bundle.path().join("bundle/chunk_00.mlpackage");
        let model = cpu(true).open(&package, &Default::default()).unwrap();
        let plan = model.plan("decode").unwrap().to_string();
        assert!(plan.contains(&format!("{precision}(")) && !plan.contains(" f16("), "{plan}");
    }
}

#[test]
fn palettes_brought_to_twelve_bits_give_the_very_same() {
    let tokens = Golden::open("tiny-lfm3").tokens;
    let on = |isa, huge_pages| {
        let threads = NonZeroUsize::new(2);
        CpuBackend::new(CpuOptions { threads, isa: Some(isa), huge_pages, ..CpuOptions::default() })
    };
    for (precision, brought) in
        [(WeightPrecision::Lut8, true), (WeightPrecision::Lut6, true), (WeightPrecision::Lut4, false)]
    {
        let bundle = bundle("tiny-lfm3", &ConvertOptions { precision, ..options() });
        let package = bundle.path().join("bundle/chunk_00.mlpackage");
        for isa in Isa::available() {
            for (role, count) in [(Role::Decode, 3), (Role::Verify, 10)] {
                let [usual, huge] =
                    [false, true].map(|huge| observe(&bundle, &on(isa, huge), role, &tokens[..count]));
                assert_eq!(usual.logits, huge.logits, "{precision}, {role:?}, {isa}");
            }
            let model = on(isa, true).open(&package, &Default::default()).unwrap();
            let plan = model.plan("decode").unwrap().to_string();
            let brought = brought && isa.name() == "avx2";
            assert_eq!(plan.contains(&format!("{precision} in 12 bits(")), brought, "{isa}: {plan}");
        }
    }
}

#[test]
fn logits_of_rounded_weights_and_activations_stay_near_the_exact_ones() {
    for name in ["tiny-lfm2", "tiny-lfm3"] {
        let tokens = Golden::open(name).tokens;
        for precision in [WeightPrecision::Lut8, WeightPrecision::Lut6, WeightPrecision::Lut4] {
            let bundle = bundle(name, &ConvertOptions { precision, ..options() });
            for isa in Isa::available().filter(|isa| isa.has_fast_int16()) {
                let on = |fast_int16| {
                    let threads = NonZeroUsize::new(2);
                    CpuBackend::new(CpuOptions {
                        threads,
                        isa: Some(isa),
                        fast_int16,
                        ..CpuOptions::default()
                    })
                };
                for (role, count) in [(Role::Decode, 12), (Role::Verify, 10), (Role::Prefill, 10)] {
                    let [exact, fast] =
                        [false, true].map(|fast| observe(&bundle, &on(fast), role, &tokens[..count]));
                    assert_ne!(exact.logits, fast.logits, "{name}, {precision}, {role:?}, {isa}");
                    for (fast, exact) in fast.logits.iter().zip(&exact.logits) {
                        assert_cosine(
                            fast,
                            exact,
                            LEAST_COSINE_ROUNDED,
                            &format!("{name}, {precision}, {role:?}, {isa}"),
                        );
                    }
                }
            }
        }
    }
}
