//! Opening, reading by rows, and every way a checkpoint can be damaged.

use std::fs;

use half::{bf16, f16};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A copy of one of the repository's test models, to be damaged.
fn copy_of(model: &str) -> TempDir {
    let source = models().join(model);
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(&source).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

fn refusal(dir: &Path) -> String {
    Checkpoint::open(dir).unwrap_err().to_string()
}

/// Rewrites the header of a safetensors file.
fn edit_header(path: &Path, edit: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    let bytes = fs::read(path).unwrap();
    let header_bytes = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header = serde_json::from_slice(&bytes[8..8 + header_bytes]).unwrap();
    edit(&mut header);
    let header = serde_json::to_vec(&header).unwrap();
    let mut edited = (header.len() as u64).to_le_bytes().to_vec();
    edited.extend_from_slice(&header);
    edited.extend_from_slice(&bytes[8 + header_bytes..]);
    fs::write(path, edited).unwrap();
}

fn edit_config(dir: &Path, name: &str, value: Value) {
    let path = dir.join("config.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    config[name] = value;
    fs::write(path, config.to_string()).unwrap();
}

/// A view of `elements` stored alone in a file.
fn with_tensor<R>(dtype: Dtype, shape: &[usize], bytes: &[u8], read: impl FnOnce(Tensor<'_>) -> R) -> R {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bytes");
    // One byte in front, so that no element is aligned.
    fs::write(&path, [&[0], bytes].concat()).unwrap();
    let file = mapped::MappedFile::open(&path).unwrap();
    read(Tensor { name: "t", path: &path, dtype, shape, file: &file, start: 1 })
}

#[test]
fn every_test_model_opens_without_a_warning() {
    for model in [
        "tiny-lfm2",
        "tiny-lfm3",
        "micro/lfm2-old-config",
        "micro/lfm2-untied-bias-f32",
        "micro/lfm3-plain-sharded-f16",
        "micro/lfm3-window8",
    ] {
        let checkpoint = Checkpoint::open(&models().join(model)).unwrap();
        assert_eq!(checkpoint.warnings(), [], "{model}");
    }
}

#[test]
fn shards_are_joined() {
    let checkpoint = Checkpoint::open(&models().join("micro/lfm3-plain-sharded-f16")).unwrap();
    assert_eq!(checkpoint.weight_files().count(), 5);
    let Operator::Attention(attention) = checkpoint.layer(2).operator else { panic!("layer 2 is attention") };
    assert!(attention.k_proj.path().ends_with("model-00002-of-00005.safetensors"));
    assert!(attention.q_proj.path().ends_with("model-00003-of-00005.safetensors"));
    assert_eq!(attention.q_proj.shape(), [128, 64]);
    assert!(attention.gate.is_none());
}

#[test]
fn an_untied_head_is_not_the_embedding_table() {
    let untied = Checkpoint::open(&models().join("micro/lfm2-untied-bias-f32")).unwrap();
    assert_eq!(
        (untied.head().name(), untied.embed().name()),
        ("lm_head.weight", "model.embed_tokens.weight")
    );
    let tied = Checkpoint::open(&models().join("tiny-lfm2")).unwrap();
    assert_eq!(tied.head().name(), "model.embed_tokens.weight");
}

#[test]
fn a_tied_head_that_is_stored_is_ignored_with_a_note() {
    let copy = copy_of("micro/lfm2-untied-bias-f32");
    edit_config(copy.path(), "tie_word_embeddings", json!(true));
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    assert_eq!(checkpoint.warnings(), [Warning::TiedHeadStored]);
    assert_eq!(checkpoint.head().name(), "model.embed_tokens.weight");
}

#[test]
fn the_gate_goes_by_two_names() {
    let copy = copy_of("micro/lfm3-window8");
    edit_header(&copy.path().join("model.safetensors"), |header| {
        let gate = header.remove("model.layers.2.self_attn.gate_proj.weight").unwrap();
        header.insert("model.layers.2.self_attn.g_proj.weight".to_owned(), gate);
    });
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    let Operator::Attention(attention) = checkpoint.layer(2).operator else { panic!("layer 2 is attention") };
    assert_eq!(attention.gate.unwrap().name(), "model.layers.2.self_attn.g_proj.weight");
}

#[test]
fn a_missing_tensor_is_named_with_its_shape() {
    let copy = copy_of("tiny-lfm2");
    edit_header(&copy.path().join("model.safetensors"), |header| {
        let stray = header.remove("model.layers.0.conv.in_proj.weight").unwrap();
        header.insert("stray".to_owned(), stray);
    });
    assert_eq!(
        refusal(copy.path()),
        "tensor `model.layers.0.conv.in_proj.weight` (3D, D) = (384, 128) is missing from the checkpoint"
    );
}

#[test]
fn a_tensor_without_a_place_is_told() {
    let copy = copy_of("micro/lfm3-window8");
    edit_config(copy.path(), "use_attention_gate", json!(false));
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    assert_eq!(checkpoint.warnings().len(), 3);
    assert_eq!(
        checkpoint.warnings()[0].to_string(),
        "model.safetensors: tensor `model.layers.2.self_attn.gate_proj.weight` has no place in this model and is ignored"
    );
}

#[test]
fn a_wrong_shape_is_named_with_both_shapes() {
    let copy = copy_of("tiny-lfm2");
    edit_header(&copy.path().join("model.safetensors"), |header| {
        header["model.layers.0.conv.in_proj.weight"]["shape"] = json!([128, 384]);
    });
    let error = refusal(copy.path());
    assert!(error.starts_with("tensor `model.layers.0.conv.in_proj.weight` in "), "{error}");
    assert!(error.ends_with("expected shape (3D, D) = (384, 128), found [128, 384]"), "{error}");
}

#[test]
fn a_foreign_element_type_is_named() {
    let copy = copy_of("tiny-lfm2");
    edit_header(&copy.path().join("model.safetensors"), |header| {
        header["model.embedding_norm.weight"]["dtype"] = json!("I16");
    });
    assert!(refusal(copy.path()).ends_with("expected BF16, F16 or F32 elements, found I16"));
}

#[test]
fn a_truncated_file_is_named() {
    let copy = copy_of("tiny-lfm2");
    let path = copy.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    for kept in [0, 5, 100, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..kept]).unwrap();
        let error = refusal(copy.path());
        assert!(error.contains("model.safetensors is truncated or damaged: "), "{kept}: {error}");
    }
}

#[test]
fn missing_files_are_named() {
    let copy = copy_of("micro/lfm3-plain-sharded-f16");
    fs::remove_file(copy.path().join("model-00002-of-00005.safetensors")).unwrap();
    assert!(refusal(copy.path()).contains("model-00002-of-00005.safetensors"));
    fs::remove_file(copy.path().join("model.safetensors.index.json")).unwrap();
    assert!(refusal(copy.path()).starts_with("no model.safetensors and no model.safetensors.index.json in "));
    fs::remove_file(copy.path().join("config.json")).unwrap();
    assert!(refusal(copy.path()).starts_with("cannot read "));
}

#[test]
fn a_directory_in_place_of_the_weights_is_refused() {
    let copy = copy_of("tiny-lfm2");
    fs::remove_file(copy.path().join("model.safetensors")).unwrap();
    fs::create_dir(copy.path().join("model.safetensors")).unwrap();
    assert!(refusal(copy.path()).ends_with("model.safetensors: not a regular file"));
}

#[test]
fn an_index_that_points_elsewhere_is_refused() {
    let copy = copy_of("micro/lfm3-plain-sharded-f16");
    let path = copy.path().join("model.safetensors.index.json");
    let index = fs::read_to_string(&path).unwrap();
    for outside in ["../x.safetensors", "/etc/passwd", "a\\\\b", "..", ""] {
        let edited = index.replace("model-00001-of-00005.safetensors", outside);
        fs::write(&path, edited).unwrap();
        assert!(refusal(copy.path()).ends_with("is not the name of a file beside the index"), "{outside}");
    }
    fs::write(&path, index.replace("00003-of", "00004-of")).unwrap();
    assert!(refusal(copy.path()).ends_with("where the index puts it"));
    fs::write(&path, "{}").unwrap();
    assert!(refusal(copy.path()).contains("weight_map"));
}

#[test]
fn range_faults_count_what_fp16_cannot_hold() {
    let elements = [1.0, f32::NAN, f32::INFINITY, -70000.0, 65504.0, -5000.0];
    let bytes: Vec<u8> = elements.iter().flat_map(|&element| bf16::from_f32(element).to_le_bytes()).collect();
    with_tensor(Dtype::Bf16, &[3, 2], &bytes, |tensor| {
        // 65504 rounds to 65536 in bf16.
        assert_eq!(tensor.range_faults(0..3, 1.0), RangeFaults { non_finite: 2, too_large: 2 });
        assert_eq!(tensor.range_faults(0..3, 16.0), RangeFaults { non_finite: 2, too_large: 3 });
        assert_eq!(tensor.range_faults(0..1, 1.0), RangeFaults { non_finite: 1, too_large: 0 });
        assert_eq!(tensor.max_abs(1..3), f32::INFINITY);
        assert_eq!(tensor.max_abs(0..1), f32::INFINITY);
    });
    let bytes: Vec<u8> = [0.5f32, -3.0].iter().flat_map(|element| element.to_le_bytes()).collect();
    with_tensor(Dtype::F32, &[2], &bytes, |tensor| {
        assert_eq!(tensor.max_abs(0..2), 3.0);
        assert_eq!(tensor.range_faults(0..2, 16.0), RangeFaults::default());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_read_in_pieces_equal_the_whole(
        bits in proptest::collection::vec(any::<u32>(), 60 * 100), cut in 0..60usize, kind in 0..3usize, exponent in 0..5i32,
    ) {
        let dtype = [Dtype::Bf16, Dtype::F16, Dtype::F32][kind];
        let scale = 2f32.powi(exponent);
        let (decoded, bytes): (Vec<f32>, Vec<Vec<u8>>) = bits.iter().map(|&bits| match dtype {
            Dtype::Bf16 => (bf16::from_bits(bits as u16).to_f32(), (bits as u16).to_le_bytes().to_vec()),
            Dtype::F16 => (f16::from_bits(bits as u16).to_f32(), (bits as u16).to_le_bytes().to_vec()),
            Dtype::F32 => (f32::from_bits(bits), bits.to_le_bytes().to_vec()),
        }).unzip();
        with_tensor(dtype, &[60, 4, 25], &bytes.concat(), |tensor| {
            let mut f32s = vec![0.0; 6000];
            let mut f16s = vec![f16::ZERO; 6000];
            for rows in [0..cut, cut..60] {
                let elements = rows.start * 100..rows.end * 100;
                tensor.read_rows_f32(rows.clone(), &mut f32s[elements.clone()]);
                tensor.read_rows_f16(rows, scale, &mut f16s[elements]);
            }
            for columns in [0..cut, cut..100] {
                let mut part = vec![f16::ZERO; 60 * columns.len()];
                tensor.read_columns_f16(0..60, columns.clone(), scale, &mut part);
                let expected = f16s.chunks(100).flat_map(|row| &row[columns.clone()]);
                assert!(part.iter().map(|half| half.to_bits()).eq(expected.map(|half| half.to_bits())));
            }
            for (index, &element) in decoded.iter().enumerate() {
                let rounded = f16::from_f32(element * scale);
                assert!(f32s[index] == element || (f32s[index].is_nan() && element.is_nan()));
                assert!(f16s[index] == rounded || (f16s[index].is_nan() && rounded.is_nan()), "{element}");
            }
        });
    }

    #[test]
    fn a_damaged_header_never_panics(edits in proptest::collection::vec((0..400usize, any::<u8>()), 1..6)) {
        let copy = copy_of("micro/lfm2-old-config");
        let path = copy.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in edits {
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(checkpoint) = Checkpoint::open(copy.path()) {
            checkpoint.embed().to_f32();
        }
    }
}
