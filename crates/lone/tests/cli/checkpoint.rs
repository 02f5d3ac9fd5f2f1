//! Checkpoints with something changed: copies of a small one, for what goes wrong and for what takes long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::machine::model;

/// A checkpoint directory whose files may be changed.
pub struct Checkpoint {
    dir: PathBuf,
}

/// A tensor, taken out.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Checkpoint {
    /// A copy of `micro/lfm2-old-config` at `dir`: 4 layers, bf16, no tokenizer.
    pub fn copy_to(dir: PathBuf) -> Self {
        std::fs::create_dir_all(&dir).unwrap();
        for name in ["config.json", "generation_config.json", "model.safetensors"] {
            std::fs::copy(model("micro/lfm2-old-config").join(name), dir.join(name)).unwrap();
        }
        Checkpoint { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Changes config.json.
    pub fn edit_config(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.path("config.json");
        let mut config = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut config);
        std::fs::write(path, config.to_string()).unwrap();
    }

    /// Changes the tensors.
    pub fn edit_tensors(&self, edit: impl FnOnce(&mut BTreeMap<String, Tensor>)) {
        let path = self.path("model.safetensors");
        let mut tensors = read(&path);
        edit(&mut tensors);
        let views: Vec<_> = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.view())).collect();
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    }

    /// Gives it a vocabulary of `entries`, so that it takes time to read and write.
    pub fn grow_vocabulary(&self, entries: usize) {
        self.edit_config(|config| config["vocab_size"] = entries.into());
        self.edit_tensors(|tensors| {
            let table = tensors.get_mut("model.embed_tokens.weight").unwrap();
            table.shape[0] = entries;
            table.bytes.resize(entries * table.shape[1] * 2, 0x3c);
        });
    }
}

impl Tensor {
    fn view(&self) -> TensorView<'_> {
        TensorView::new(self.dtype, self.shape.clone(), &self.bytes).unwrap()
    }
}

fn read(path: &Path) -> BTreeMap<String, Tensor> {
    let file = std::fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let tensors = tensors.tensors().into_iter().map(|(name, view)| {
        let (dtype, shape, bytes) = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
        (name, Tensor { dtype, shape, bytes })
    });
    tensors.collect()
}
