//! Models to test with, and what they are asked.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use lone_convert::{ConvertOptions, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime, Session, SessionOptions};
use lone_lfm::{ChatTemplate, Checkpoint, Conversation, Tokenizer};
use serde::Deserialize;

/// The two small trained models.
pub(crate) const MODELS: [&str; 2] = ["tiny-lfm2", "tiny-lfm3"];

#[derive(Deserialize)]
struct Exam {
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    task: String,
    messages: Vec<serde_json::Value>,
    answer: String,
}

/// A question as a prompt has it.
pub(crate) struct Asked {
    pub(crate) task: String,
    pub(crate) prompt: Vec<u32>,
    pub(crate) answer: String,
}

/// The checkpoint of one of [`MODELS`].
pub(crate) fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

/// Converts `checkpoint` and loads it on the CPU.
pub(crate) fn load(checkpoint: &Path, options: &ConvertOptions) -> Runtime {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("bundle");
    convert(&Checkpoint::open(checkpoint).unwrap(), &bundle, options, &mut ()).unwrap();
    let backend = CpuBackend::new(CpuOptions { threads: NonZeroUsize::new(2), ..CpuOptions::default() });
    Runtime::load(&bundle, &backend, &LoadOptions::default()).unwrap()
}

pub(crate) fn session(runtime: &Runtime) -> Session {
    runtime.session(&SessionOptions::default()).unwrap()
}

/// Every question of the exam of one of [`MODELS`].
pub(crate) fn exam(name: &str) -> Vec<Asked> {
    let dir = model(name);
    let (template, tokenizer) = (ChatTemplate::open(&dir).unwrap(), Tokenizer::open(&dir).unwrap());
    let exam: Exam = serde_json::from_slice(&std::fs::read(dir.join("exam.json")).unwrap()).unwrap();
    let asked = exam.questions.into_iter().map(|Question { task, messages, answer }| {
        let text = template.render(&Conversation::new(&messages)).unwrap();
        Asked { task, prompt: tokenizer.encode(&text).unwrap(), answer }
    });
    asked.collect()
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
