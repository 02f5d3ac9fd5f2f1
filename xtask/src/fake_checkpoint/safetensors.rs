//! Writes tensors as safetensors: a length, a JSON header, the values.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::random::{Values, seed_for};
use super::tensors::Tensor;
use super::{DType, Options};

const BLOCK_BYTES: usize = 4 << 20;

/// Writes all tensors into `out`, in one file or in shards of about equal size with their index.
pub(super) fn write(out: &Path, tensors: &[Tensor], options: &Options) -> anyhow::Result<()> {
    let shards = shards(tensors, options.shards);
    if let [all] = shards[..] {
        return write_shard(&out.join("model.safetensors"), all, options);
    }
    let mut weight_map = Map::new();
    for (i, shard) in shards.iter().enumerate() {
        let file = format!("model-{:05}-of-{:05}.safetensors", i + 1, shards.len());
        write_shard(&out.join(&file), shard, options)?;
        weight_map.extend(shard.iter().map(|tensor| (tensor.name.clone(), json!(file))));
    }
    let total_size: usize = tensors.iter().map(|tensor| bytes(tensor, options.dtype)).sum();
    let index = json!({ "metadata": { "total_size": total_size }, "weight_map": weight_map });
    super::write_json(&out.join("model.safetensors.index.json"), &index)
}

/// Cuts the tensors into at most `count` runs, each ending where its share of the elements is reached.
fn shards(tensors: &[Tensor], count: usize) -> Vec<&[Tensor]> {
    let total: usize = tensors.iter().map(Tensor::elements).sum();
    let mut shards = Vec::new();
    let (mut start, mut elements) = (0, 0);
    for (i, tensor) in tensors.iter().enumerate() {
        elements += tensor.elements();
        if elements * count >= total * (shards.len() + 1) {
            shards.push(&tensors[start..=i]);
            start = i + 1;
        }
    }
    shards
}

fn bytes(tensor: &Tensor, dtype: DType) -> usize {
    tensor.elements() * dtype.bytes()
}

fn write_shard(path: &Path, tensors: &[Tensor], options: &Options) -> anyhow::Result<()> {
    let create = || {
        let mut file = File::create(path)?;
        let header = header(tensors, options.dtype);
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        tensors.iter().try_for_each(|tensor| write_values(&mut file, tensor, options))
    };
    create().with_context(|| format!("cannot write {}", path.display()))
}

/// The JSON header, padded with blanks to a multiple of 8 bytes as the format asks.
fn header(tensors: &[Tensor], dtype: DType) -> Vec<u8> {
    let mut entries = Map::from_iter([("__metadata__".to_owned(), json!({ "format": "pt" }))]);
    let mut start = 0;
    for tensor in tensors {
        let end = start + bytes(tensor, dtype);
        let entry = json!({
            "dtype": dtype.safetensors_name(),
            "shape": tensor.shape,
            "data_offsets": [start, end],
        });
        entries.insert(tensor.name.clone(), entry);
        start = end;
    }
    let mut header = Value::Object(entries).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    header
}

fn write_values(file: &mut File, tensor: &Tensor, options: &Options) -> std::io::Result<()> {
    let seed = seed_for(options.seed, &tensor.name);
    let mut values = Values::new(seed, options.dtype, tensor.mean, tensor.deviation);
    let mut left = bytes(tensor, options.dtype);
    let mut block = vec![0; BLOCK_BYTES.min(left)];
    while left > 0 {
        let piece = &mut block[..left.min(BLOCK_BYTES)];
        values.fill(piece);
        file.write_all(piece)?;
        left -= piece.len();
    }
    Ok(())
}
