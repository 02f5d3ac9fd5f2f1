//! What the tests share: the models under `models/`, and their bundles.

use std::path::{Path, PathBuf};

use lone_bundle::Role;
use lone_convert::{ConvertOptions, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime};
use lone_lfm::Checkpoint;
use lone_mil::Backend;
use lone_verify::{Candidate, Record};
use tempfile::TempDir;

pub(crate) const MODELS: [&str; 2] = ["tiny-lfm2", "tiny-lfm3"];

pub(crate) fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

/// A model's checkpoint and its bundle.
pub(crate) struct Converted {
    pub(crate) checkpoint: Checkpoint,
    dir: TempDir,
}

impl Converted {
    /// Every shape of pass, and a context for the longest record.
    pub(crate) fn new(name: &str) -> Self {
        let options = ConvertOptions { ctx: vec![768], spec_drafts: Some(4), ..ConvertOptions::default() };
        Converted::with(name, &ConvertOptions { prefill: vec![16], ..options })
    }

    pub(crate) fn with(name: &str, options: &ConvertOptions) -> Self {
        let checkpoint = Checkpoint::open(&model(name)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        convert(&checkpoint, &dir.path().join("bundle"), options, &mut ()).unwrap();
        Converted { checkpoint, dir }
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.dir.path().join("bundle")
    }

    pub(crate) fn load(&self, backend: &dyn Backend, role: Role) -> Runtime {
        let options = LoadOptions { roles: vec![role], keep_layer_outputs: true, ..LoadOptions::default() };
        Runtime::load(&self.bundle(), backend, &options).unwrap()
    }

    /// What transformers makes of the checkpoint.
    pub(crate) fn golden(&self) -> Record {
        let layers = self.checkpoint.config().layers.len();
        Record::open(&self.checkpoint.dir().join("golden.safetensors"), layers).unwrap()
    }
}

pub(crate) fn cpu() -> CpuBackend {
    CpuBackend::new(CpuOptions::default())
}

/// What the bundle makes of the tokens and positions of `like`, by passes of `role`.
pub(crate) fn record(runtime: &mut Runtime, role: Role, like: &Record) -> Record {
    let mut candidate = Candidate::new(runtime, role).unwrap();
    candidate.read(&like.tokens, &|position| like.positions.contains(&position), &mut ()).unwrap();
    candidate.into_record()
}
