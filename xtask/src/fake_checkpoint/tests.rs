//! Small checkpoints, read back with the crates that read real ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ::safetensors::SafeTensors;
use half::bf16;
use tokenizers::Tokenizer;

use super::*;

fn small(preset: Preset) -> Model {
    let model = preset.model();
    let head_dim = if model.family == Family::Lfm2 { 8 } else { 16 };
    Model { hidden: 32, ffn: 48, layers: 6, heads: 4, kv_heads: 2, head_dim, vocab: 300, ..model }
}

/// Every tensor of every safetensors file in `dir`: shape and bytes by name.
fn read(dir: &Path) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let mut tensors = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            let bytes = fs::read(path).unwrap();
            for (name, view) in SafeTensors::deserialize(&bytes).unwrap().iter() {
                tensors.insert(name.to_owned(), (view.shape().to_vec(), view.data().to_vec()));
            }
        }
    }
    tensors
}

#[test]
fn the_published_models_have_their_published_number_of_parameters() {
    let millions = |preset: Preset| {
        let tensors = tensors::tensors(&preset.model());
        tensors.iter().map(tensors::Tensor::elements).sum::<usize>() / 1_000_000
    };
    assert_eq!(millions(Preset::Lfm2_350m), 354);
    assert_eq!(millions(Preset::Lfm2_700m), 742);
    assert_eq!(millions(Preset::Lfm2_1_2b), 1170);
    assert_eq!(millions(Preset::Lfm3_1_7b), 1728);
}

#[test]
fn shards_and_one_file_hold_the_same_tensors() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = Options::new(small(Preset::Lfm3_1_7b));
    write(one.path(), &options).unwrap();
    write(three.path(), &Options { shards: 3, ..options }).unwrap();
    let tensors = read(one.path());
    assert_eq!(tensors, read(three.path()));
    assert_eq!(tensors["model.layers.2.self_attn.gate_proj.weight"].0, [4, 32]);
    let index = fs::read(three.path().join("model.safetensors.index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    assert_eq!(index["weight_map"].as_object().unwrap().len(), tensors.len());
    assert!(three.path().join("model-00003-of-00003.safetensors").exists());
}

#[test]
fn values_have_the_deviation_their_matrix_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &Options::new(Model { hidden: 64, head_dim: 16, ..small(Preset::Lfm2_350m) })).unwrap();
    let (_, bytes) = &read(dir.path())["model.embed_tokens.weight"];
    let values: Vec<f64> =
        (bytes.as_chunks().0.iter().map(|&value| bf16::from_le_bytes(value).to_f64())).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let deviation = (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
    assert!(mean.abs() < 0.005, "mean {mean}");
    assert!((deviation - 0.125).abs() < 0.01, "deviation {deviation}");
}

#[test]
fn the_tokenizer_has_the_vocabulary_and_round_trips_any_text() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &Options::new(small(Preset::Lfm2_350m))).unwrap();
    let tokenizer = Tokenizer::from_file(dir.path().join("tokenizer.json")).unwrap();
    assert_eq!(tokenizer.get_vocab_size(true), 300);
    let text = "Grüße, 世界!\n\tif x:  y";
    let ids = tokenizer.encode(text, false).unwrap().get_ids().to_vec();
    assert_eq!(ids.len(), text.len());
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), text);
    assert_eq!(tokenizer.encode("<|im_end|>", false).unwrap().get_ids(), [7]);
    assert_eq!(tokenizer.decode(&[299], true).unwrap(), " w299");
}

#[test]
fn dimensions_that_contradict_each_other_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let model = small(Preset::Lfm2_350m);
    for wrong in [
        Model { heads: 3, ..model.clone() },
        Model { head_dim: 16, ..model.clone() },
        Model { layers: 0, ..model.clone() },
        Model { vocab: 269, ..model.clone() },
    ] {
        write(out.path(), &Options::new(wrong)).unwrap_err();
    }
}
