//! Bundles of the repository's models, in directories that go away.

use std::fs;
use std::path::{Path, PathBuf};

use lone_bundle::{Bundle, Graph};
use lone_convert::{Conversion, ConvertError, ConvertOptions, Note, convert};
use lone_lfm::Checkpoint;
use tempfile::TempDir;
use xtask::fake_checkpoint::{self, Model, Options, Preset};

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
    pub(crate) notes: Vec<Note>,
}

impl Converted {
    pub(crate) fn dir(&self) -> PathBuf {
        self.parent.path().join("bundle")
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.dir().join(inside)
    }

    /// Links to the packages, with names that no bundle of another number has.
    pub(crate) fn link(&self, dir: &Path, number: usize) -> Vec<PathBuf> {
        let link = |graph: &Graph| {
            let link = dir.join(format!("{number}_{}", graph.package));
            std::os::unix::fs::symlink(self.path(&graph.package), &link).unwrap();
            link
        };
        self.content.graphs.iter().map(link).collect()
    }
}

/// Where the model is.
pub(crate) fn model_dir(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(model)
}

/// Every shape there is.
pub(crate) fn all_functions() -> ConvertOptions {
    ConvertOptions { ctx: vec![128], prefill: vec![8], spec_drafts: Some(16), ..ConvertOptions::default() }
}

pub(crate) fn convert_model(
    model: &str,
    out: &Path,
    options: &ConvertOptions,
) -> Result<Conversion, ConvertError> {
    convert(&Checkpoint::open(&model_dir(model)).unwrap(), out, options, &mut ())
}

pub(crate) fn converted(model: &str, options: &ConvertOptions) -> Converted {
    convert_checkpoint(&Checkpoint::open(&model_dir(model)).unwrap(), options)
}

pub(crate) fn convert_checkpoint(checkpoint: &Checkpoint, options: &ConvertOptions) -> Converted {
    let parent = tempfile::tempdir().unwrap();
    let Conversion { bundle, notes } =
        convert(checkpoint, &parent.path().join("bundle"), options, &mut ()).unwrap();
    Converted { parent, content: bundle, notes }
}

/// Small models with reductions wide enough for every rule.
pub(crate) fn wide_models() -> [Model; 2] {
    let lfm2 = Model { layers: 3, vocab: 300, kv_heads: 1, ..Preset::Lfm2_350m.model() };
    let lfm3 = Preset::Lfm3_1_7b.model();
    [
        Model { hidden: 1088, heads: 17, ffn: 32, conv_bias: true, ..lfm2 },
        Model { hidden: 64, heads: 4, head_dim: 16, ffn: 8200, layers: 5, window: 8, vocab: 300, ..lfm3 },
    ]
}

/// A checkpoint of random weights, without tokenizer.
pub(crate) fn write_fake(model: Model) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { tokenizer: false, ..Options::new(model) };
    fake_checkpoint::write(dir.path(), &options).unwrap();
    dir
}

/// A copy of a model's directory.
pub(crate) fn copy_of(model: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in fs::read_dir(model_dir(model)).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

/// Puts `elements` in place of the first ones of a tensor of the model in `dir`, which is one file of bf16.
pub(crate) fn overwrite(dir: &Path, tensor: &str, elements: &[f32]) {
    let path = dir.join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let (header_bytes, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let start = 8 + header_bytes + metadata.info(tensor).unwrap().data_offsets.0;
    for (slot, &element) in bytes[start..].as_chunks_mut::<2>().0.iter_mut().zip(elements) {
        *slot = half::bf16::from_f32(element).to_le_bytes();
    }
    fs::write(path, bytes).unwrap();
}
