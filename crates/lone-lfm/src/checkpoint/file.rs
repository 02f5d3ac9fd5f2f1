//! Files of a checkpoint directory: one `model.safetensors`, or the shards of `model.safetensors.index.json`.
//!
//! The header of every file is checked against the file's length before any tensor can be asked for, so a range taken
//! from it later is inside the mapping.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::{SafeTensorError, SafeTensors};
use serde::Deserialize;

use super::CheckpointError;
use super::mapped::MappedFile;

/// Width of the length field that a safetensors file opens with.
const LENGTH_BYTES: usize = 8;

/// One mapped file.
pub(super) struct WeightFile {
    pub(super) path: PathBuf,
    pub(super) bytes: MappedFile,
}

/// Where a tensor lies, and what it is.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    /// Index of the file.
    pub(super) file: usize,
    pub(super) dtype: safetensors::Dtype,
    pub(super) shape: Vec<usize>,
    /// Bytes of the file that hold the elements.
    pub(super) range: Range<usize>,
}

/// All files of a checkpoint, and every tensor in them by name.
pub(super) struct WeightFiles {
    pub(super) files: Vec<WeightFile>,
    pub(super) tensors: BTreeMap<String, Stored>,
    /// (tensor, file) that a shard holds and the index does not assign to it.
    pub(super) unlisted: Vec<(String, PathBuf)>,
}

impl WeightFiles {
    pub(super) fn open(dir: &Path) -> Result<WeightFiles, CheckpointError> {
        let single = dir.join("model.safetensors");
        let index = dir.join("model.safetensors.index.json");
        if single.exists() {
            let (file, tensors) = open_file(single, 0)?;
            Ok(WeightFiles { files: vec![file], tensors, unlisted: Vec::new() })
        } else if index.exists() {
            open_shards(dir, &index)
        } else {
            Err(CheckpointError::NoWeights { dir: dir.to_owned() })
        }
    }
}

fn open_file(
    path: PathBuf,
    number: usize,
) -> Result<(WeightFile, BTreeMap<String, Stored>), CheckpointError> {
    let bytes =
        MappedFile::open(&path).map_err(|source| CheckpointError::Read { path: path.clone(), source })?;
    let (header_bytes, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| {
        CheckpointError::Damaged { path: path.clone(), reason: explain(&error, bytes.len()) }
    })?;
    let data_start = LENGTH_BYTES + header_bytes;
    let tensors = metadata
        .tensors()
        .into_iter()
        .map(|(name, info)| {
            let (start, end) = info.data_offsets;
            let range = data_start + start..data_start + end;
            (name, Stored { file: number, dtype: info.dtype, shape: info.shape.clone(), range })
        })
        .collect();
    Ok((WeightFile { path, bytes }, tensors))
}

fn explain(error: &SafeTensorError, file_bytes: usize) -> String {
    match error {
        SafeTensorError::MetadataIncompleteBuffer => {
            format!("its header describes more or fewer bytes than the file's {file_bytes}")
        }
        SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength => {
            format!("its header does not fit in the file's {file_bytes} bytes")
        }
        other => other.to_string(),
    }
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

fn open_shards(dir: &Path, index_path: &Path) -> Result<WeightFiles, CheckpointError> {
    let index_error = |reason| CheckpointError::Index { path: index_path.to_owned(), reason };
    let text = crate::regular_file::read_to_string(index_path)
        .map_err(|source| CheckpointError::Read { path: index_path.to_owned(), source })?;
    let Index { weight_map } = serde_json::from_str(&text).map_err(|error| index_error(error.to_string()))?;
    let names: BTreeSet<&str> = weight_map.values().map(String::as_str).collect();
    if let Some(name) = names.iter().find(|name| !is_plain_file_name(name)) {
        return Err(index_error(format!("shard \"{name}\" is not the name of a file beside the index")));
    }
    let mut shards = WeightFiles { files: Vec::new(), tensors: BTreeMap::new(), unlisted: Vec::new() };
    for (number, &file_name) in names.iter().enumerate() {
        let (file, tensors) = open_file(dir.join(file_name), number)?;
        for (name, stored) in tensors {
            if weight_map.get(&name).is_some_and(|assigned| assigned == file_name) {
                shards.tensors.insert(name, stored);
            } else {
                shards.unlisted.push((name, file.path.clone()));
            }
        }
        shards.files.push(file);
    }
    match weight_map.iter().find(|(tensor, _)| !shards.tensors.contains_key(*tensor)) {
        Some((tensor, file)) => {
            Err(index_error(format!("tensor `{tensor}` is not in {file}, where the index puts it")))
        }
        None => Ok(shards),
    }
}

/// An index comes from strangers and must not reach outside its directory.
fn is_plain_file_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file_name| file_name == name) && !name.contains('\\')
}
