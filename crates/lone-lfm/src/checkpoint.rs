//! A checkpoint directory, opened: its configuration, and every tensor under the role it plays.
//!
//! Opening maps the files and checks that each tensor the configuration calls for is there, with its shape and a type
//! that can be read; afterwards nothing can be missing. Elements are read later, by rows, from the mapping.

mod error;
mod file;
mod mapped;
mod roles;
mod shape;
mod tensor;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use error::CheckpointError;
pub use roles::{AttentionTensors, ConvTensors, LayerTensors, Operator};
pub use shape::Shape;
pub use tensor::{Dtype, F16_MAX, RangeFaults, Tensor};

use crate::{Config, Warning};
use file::{WeightFile, WeightFiles};
use roles::{ModelTensors, Wanted};

const HEAD: &str = "lm_head.weight";

/// A validated checkpoint.
pub struct Checkpoint {
    dir: PathBuf,
    config: Config,
    warnings: Vec<Warning>,
    files: Vec<WeightFile>,
    tensors: ModelTensors<Located>,
}

/// A tensor that was found and fits.
#[derive(Debug, Clone)]
struct Located {
    name: String,
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    start: usize,
}

impl Checkpoint {
    /// Opens a directory of config.json and safetensors weights.
    ///
    /// # Errors
    /// [`CheckpointError`] names the file, field or tensor that is wrong.
    pub fn open(dir: &Path) -> Result<Checkpoint, CheckpointError> {
        let (config, mut warnings) = Config::open(dir)?;
        let stored = WeightFiles::open(dir)?;
        let mut used = BTreeSet::new();
        let tensors = roles::wanted(&config).try_map(&mut |wanted| {
            let located = locate(&stored, wanted)?;
            used.insert(located.name.clone());
            Ok::<_, CheckpointError>(located)
        })?;
        warn_of_unused(&stored, &used, config.tied, &mut warnings);
        Ok(Checkpoint { dir: dir.to_owned(), config, warnings, files: stored.files, tensors })
    }

    /// The directory it was opened from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The model's facts.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What deserves a word to the user.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Files of weights, in the order of their names.
    pub fn weight_files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Tensors of layer `layer`.
    ///
    /// # Panics
    /// If the model has no such layer.
    pub fn layer(&self, layer: usize) -> LayerTensors<Tensor<'_>> {
        self.tensors.layers[layer].map(|tensor| self.view(tensor))
    }

    /// Embedding table, `(V, D)`.
    pub fn embed(&self) -> Tensor<'_> {
        self.view(&self.tensors.embed)
    }

    /// Norm in front of the head, `(D)`; stored as `embedding_norm`.
    pub fn final_norm(&self) -> Tensor<'_> {
        self.view(&self.tensors.final_norm)
    }

    /// Head, `(V, D)`: the embedding table where the two are tied.
    pub fn head(&self) -> Tensor<'_> {
        self.view(self.tensors.head.as_ref().unwrap_or(&self.tensors.embed))
    }

    fn view<'a>(&'a self, located: &'a Located) -> Tensor<'a> {
        let file = &self.files[located.file];
        Tensor {
            name: &located.name,
            path: &file.path,
            dtype: located.dtype,
            shape: &located.shape,
            file: &file.bytes,
            start: located.start,
        }
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("dir", &self.dir)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn locate(stored: &WeightFiles, wanted: &Wanted) -> Result<Located, CheckpointError> {
    let found = wanted.names.iter().find_map(|name| Some((name, stored.tensors.get(name)?)));
    let Some((name, tensor)) = found else {
        return Err(CheckpointError::MissingTensor {
            names: wanted.names.clone(),
            expected: wanted.shape.clone(),
        });
    };
    let file = || stored.files[tensor.file].path.clone();
    if tensor.shape != wanted.shape.sizes() {
        return Err(CheckpointError::WrongShape {
            name: name.clone(),
            file: file(),
            expected: wanted.shape.clone(),
            found: tensor.shape.clone(),
        });
    }
    let dtype = match tensor.dtype {
        safetensors::Dtype::BF16 => Dtype::Bf16,
        safetensors::Dtype::F16 => Dtype::F16,
        safetensors::Dtype::F32 => Dtype::F32,
        other => {
            let found = format!("{other:?}");
            return Err(CheckpointError::WrongType { name: name.clone(), file: file(), found });
        }
    };
    Ok(Located {
        name: name.clone(),
        file: tensor.file,
        dtype,
        shape: tensor.shape.clone(),
        start: tensor.range.start,
    })
}

fn warn_of_unused(stored: &WeightFiles, used: &BTreeSet<String>, tied: bool, warnings: &mut Vec<Warning>) {
    let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for (name, tensor) in stored.tensors.iter().filter(|(name, _)| !used.contains(*name)) {
        if tied && name == HEAD {
            warnings.push(Warning::TiedHeadStored);
        } else {
            let file = file_name(&stored.files[tensor.file].path);
            warnings.push(Warning::UnexpectedTensor { name: name.clone(), file });
        }
    }
    for (name, path) in &stored.unlisted {
        warnings.push(Warning::UnexpectedTensor { name: name.clone(), file: file_name(path) });
    }
}

#[cfg(test)]
mod tests;
