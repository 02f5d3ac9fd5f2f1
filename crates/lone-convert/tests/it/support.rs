//! Bundles of the repository's models, in directories that go away.

use std::path::{Path, PathBuf};

use lone_bundle::Bundle;
use lone_convert::{Conversion, ConvertError, ConvertOptions, convert};
use lone_lfm::Checkpoint;
use tempfile::TempDir;

/// All of them, under `models/`.
pub(crate) const MODELS: [&str; 6] = [
    "micro/lfm2-old-config",
    "micro/lfm2-untied-bias-f32",
    "micro/lfm3-plain-sharded-f16",
    "micro/lfm3-window8",
    "tiny-lfm2",
    "tiny-lfm3",
];

/// A bundle that is removed when it is dropped.
pub(crate) struct Converted {
    parent: TempDir,
    pub(crate) content: Bundle,
}

impl Converted {
    pub(crate) fn dir(&self) -> PathBuf {
        self.parent.path().join("bundle")
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.dir().join(inside)
    }
}

/// Where the model is.
pub(crate) fn model_dir(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(model)
}

/// Every shape there is.
pub(crate) fn all_functions() -> ConvertOptions {
    ConvertOptions { ctx: 128, prefill: 8, spec_drafts: Some(16), ..ConvertOptions::default() }
}

pub(crate) fn convert_model(
    model: &str,
    out: &Path,
    options: &ConvertOptions,
) -> Result<Conversion, ConvertError> {
    convert(&Checkpoint::open(&model_dir(model)).unwrap(), out, options, &mut ())
}

pub(crate) fn converted(model: &str, options: &ConvertOptions) -> Converted {
    let parent = tempfile::tempdir().unwrap();
    let content = convert_model(model, &parent.path().join("bundle"), options).unwrap().bundle;
    Converted { parent, content }
}
