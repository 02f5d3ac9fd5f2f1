//! The two small trained models, converted and run on the CPU, against their checkpoints and transformers' records.

#![cfg(test)]

use std::path::{Path, PathBuf};

use lone_bundle::Role;
use lone_convert::{ConvertOptions, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime};
use lone_lfm::{Checkpoint, Stage};
use lone_mil::{Backend, Interpreter, Reference};
use lone_verify::{
    Amount, BundleExaminee, Candidate, CheckpointExaminee, Divergence, Drift, Exam, Examinee, Examiner,
    Marks, RangeWatch, Ranges, Record, Risk, Selection,
};
use serde::Deserialize;
use tempfile::TempDir;

const MODELS: [&str; 2] = ["tiny-lfm2", "tiny-lfm3"];

/// How alike fp16 and f32 logits must be, at every position.
const LEAST_COSINE: f64 = 0.9999;
/// How many points of 100 an exam may be off.
const MOST_POINTS_OFF: f64 = 0.5;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

/// A model's checkpoint and its bundle.
struct Converted {
    checkpoint: Checkpoint,
    dir: TempDir,
}

impl Converted {
    fn new(name: &str) -> Self {
        let checkpoint = Checkpoint::open(&model(name)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let options = ConvertOptions {
            ctx: vec![768],
            prefill: vec![16],
            spec_drafts: Some(4),
            ..ConvertOptions::default()
        };
        convert(&checkpoint, &dir.path().join("bundle"), &options, &mut ()).unwrap();
        Converted { checkpoint, dir }
    }

    fn bundle(&self) -> PathBuf {
        self.dir.path().join("bundle")
    }

    fn load(&self, backend: &dyn Backend, role: Role) -> Runtime {
        let options = LoadOptions { roles: vec![role], keep_layer_outputs: true, ..LoadOptions::default() };
        Runtime::load(&self.bundle(), backend, &options).unwrap()
    }

    fn golden(&self) -> Record {
        let layers = self.checkpoint.config().layers.len();
        Record::open(&self.checkpoint.dir().join("golden.safetensors"), layers).unwrap()
    }
}

fn cpu() -> CpuBackend {
    CpuBackend::new(CpuOptions::default())
}

/// What the bundle makes of the tokens and positions of `like`, by passes of `role`.
fn record(runtime: &mut Runtime, role: Role, like: &Record) -> Record {
    let mut candidate = Candidate::new(runtime, role).unwrap();
    candidate.read(&like.tokens, &|position| like.positions.contains(&position), &mut ()).unwrap();
    candidate.into_record()
}

#[test]
fn a_bundle_follows_the_record_of_transformers_by_whatever_passes_it_reads() {
    for name in MODELS {
        let converted = Converted::new(name);
        let golden = converted.golden();
        for role in [Role::Decode, Role::Prefill, Role::Verify] {
            let mut runtime = converted.load(&cpu(), role);
            let drift = Drift::between(&golden, &record(&mut runtime, role, &golden));
            assert!(drift.logits.worst >= LEAST_COSINE, "{name} {role:?}: {:?}", drift.logits);
            assert_eq!(drift.stages.len(), golden.states.len(), "{name}");
            for stage in &drift.stages {
                assert!(stage.similarity.worst >= LEAST_COSINE, "{name} {role:?}: {stage:?}");
            }
            assert_eq!(drift.argmax.different.len(), drift.argmax.near_ties, "{name}: {:?}", drift.argmax);
        }
    }
}

#[test]
fn our_own_reference_is_that_of_transformers() {
    for name in MODELS {
        let converted = Converted::new(name);
        let golden = converted.golden();
        let all = Record::of_checkpoint(&converted.checkpoint, &golden.tokens).unwrap();
        assert_eq!(all.states.len(), converted.checkpoint.config().layers.len() + 2);
        let row = |rows: &[f32], position: usize| {
            let width = rows.len() / all.positions.len();
            rows[position * width..][..width].to_vec()
        };
        let rows = |table: &[f32]| golden.positions.iter().flat_map(|&p| row(table, p)).collect::<Vec<_>>();
        let states =
            all.states.iter().map(|state| lone_verify::State { stage: state.stage, rows: rows(&state.rows) });
        let ours = Record { states: states.collect(), logits: rows(&all.logits), ..golden.clone() };
        let drift = Drift::between(&golden, &ours);
        assert!(drift.logits.worst > 1.0 - 1e-9, "{name}: {:?}", drift.logits);
        assert!(drift.stages.iter().all(|stage| stage.similarity.worst > 1.0 - 1e-9), "{name}: {drift:?}");
    }
}

#[derive(Deserialize)]
struct Case {
    prompt_ids: Vec<u32>,
    continuation_ids: Vec<u32>,
}

#[test]
fn greedy_answers_part_nowhere_or_at_near_ties() {
    for name in MODELS {
        let converted = Converted::new(name);
        let cases: Vec<Case> =
            serde_json::from_slice(&std::fs::read(model(name).join("greedy.json")).unwrap()).unwrap();
        let mut runtime = converted.load(&cpu(), Role::Decode);
        for case in cases.iter().step_by(10) {
            let mut candidate = Candidate::new(&mut runtime, Role::Decode).unwrap();
            candidate.read(&case.prompt_ids, &|_| true, &mut ()).unwrap();
            let answer = candidate.answer(64, &[7], &mut ()).unwrap();
            let found = candidate.into_record();
            assert_eq!(found.tokens.len() + 1, case.prompt_ids.len() + answer.len());
            let reference = Record::of_checkpoint(&converted.checkpoint, &found.tokens).unwrap();
            match Divergence::first(&reference, case.prompt_ids.len(), &answer) {
                None => assert_eq!(answer, case.continuation_ids, "{name}"),
                Some(divergence) => assert!(divergence.near_tie, "{name}: {divergence:?}"),
            }
        }
    }
}

#[test]
fn an_answer_ends_where_the_context_does() {
    let converted = Converted::new("tiny-lfm3");
    let mut runtime = converted.load(&cpu(), Role::Decode);
    let mut candidate = Candidate::new(&mut runtime, Role::Decode).unwrap();
    candidate.read(&[5; 766], &|_| true, &mut ()).unwrap();
    assert_eq!(candidate.answer(100, &[], &mut ()).unwrap().len(), 3, "two are read and one more is chosen");
}

fn take(exam: &Exam, dir: &Path, examinee: &mut dyn Examinee) -> Marks {
    let examiner = Examiner::open(dir, vec![2, 7]).unwrap();
    let mut marks = Marks::default();
    for question in &exam.questions {
        marks.count(&question.task, examiner.ask(question, examinee).unwrap().is_right);
    }
    marks
}

fn points_off(exam: &Exam, marks: &Marks) -> f64 {
    100.0 * (exam.transformers_f32.as_ref().unwrap().total - marks.scores().total).abs()
}

#[test]
fn bundles_pass_the_exam_as_transformers_does_in_f32() {
    for name in MODELS {
        let converted = Converted::new(name);
        let exam = Exam::open(&model(name).join("exam.json")).unwrap();
        let mut runtime = Runtime::load(&converted.bundle(), &cpu(), &LoadOptions::default()).unwrap();
        let mut examinee = BundleExaminee::new(&mut runtime).unwrap();
        let marks = take(&exam, &converted.bundle(), &mut examinee);
        assert_eq!(marks.total().asked, 400);
        assert!(points_off(&exam, &marks) <= MOST_POINTS_OFF, "{name}: {:?}", marks.scores());
    }
}

#[test]
fn the_checkpoint_in_f32_answers_as_its_bundle_does() {
    for name in MODELS {
        let converted = Converted::new(name);
        let exam = Exam::open(&model(name).join("exam.json")).unwrap();
        let mut runtime = Runtime::load(&converted.bundle(), &cpu(), &LoadOptions::default()).unwrap();
        let examiner = Examiner::open(&model(name), vec![2, 7]).unwrap();
        let mut answers = Vec::new();
        for question in exam.select(&Selection { amount: Amount::Limit(25), ..Selection::default() }).unwrap()
        {
            let mut bundle = BundleExaminee::new(&mut runtime).unwrap();
            let of_bundle = examiner.ask(question, &mut bundle).unwrap();
            let mut checkpoint = CheckpointExaminee::new(&converted.checkpoint);
            answers.push((examiner.ask(question, &mut checkpoint).unwrap(), of_bundle));
        }
        let different = answers.iter().filter(|(a, b)| a != b).count();
        assert!(different <= 1, "{name}: {answers:#?}");
    }
}

fn ranges(converted: &Converted, tokens: &[u32]) -> Ranges {
    let interpreter = Interpreter::<Reference>::new();
    let watch = RangeWatch::new(&interpreter);
    let mut runtime = converted.load(&watch, Role::Decode);
    let like = Record { tokens: tokens.into(), positions: vec![], states: vec![], logits: vec![] };
    record(&mut runtime, Role::Decode, &like);
    watch.ranges()
}

#[test]
fn every_value_is_watched_and_what_is_watched_is_what_is_computed() {
    let converted = Converted::new("tiny-lfm3");
    let tokens = &converted.golden().tokens[..12];
    let ranges = ranges(&converted, tokens);
    assert_eq!(ranges.at_risk().collect::<Vec<_>>(), []);
    // The outputs of the layers are among them; the reference knows how large those are.
    let reference = Record::of_checkpoint(&converted.checkpoint, tokens).unwrap();
    for layer in [0, 3, 6] {
        let name = if layer == 3 { "hidden_out".to_owned() } else { format!("layer_{layer}") };
        let range = ranges.values().iter().find(|range| {
            range.value == name && range.package == format!("chunk_{:02}.mlpackage", layer / 4)
        });
        let largest = reference.state(Stage::Layer(layer)).unwrap().iter().fold(0f32, |m, x| m.max(x.abs()));
        let found = range.unwrap().largest;
        assert!((found - largest).abs() <= 0.01 * largest, "layer {layer}: {found}, not {largest}");
    }
}

#[test]
fn a_residual_stream_that_grows_is_seen() {
    let converted = Converted::new("tiny-lfm2");
    let ranges = ranges(&converted, &converted.golden().tokens[..40]);
    let largest = ranges.largest().unwrap();
    assert!(largest.largest > 1000.0, "{largest:?}");
    let risks: Vec<_> = ranges.at_risk().collect();
    assert!(risks.iter().all(|(_, risk)| *risk != Risk::Overflow), "{risks:?}");
}
