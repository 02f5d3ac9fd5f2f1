//! Conversions that fail: one clear error, and nothing left behind.

use std::fs;
use std::path::Path;

use lone_convert::{ConvertError, ConvertOptions, Note, Phase, Progress, convert};
use lone_lfm::Checkpoint;

use crate::support::{convert_checkpoint, convert_model, copy_of, model_dir, overwrite};

/// What converting `checkpoint` says, after making sure that it left nothing.
fn refusal(checkpoint: &Path, options: &ConvertOptions) -> String {
    let parent = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::open(checkpoint).unwrap();
    let refused = convert(&checkpoint, &parent.path().join("new/bundle"), options, &mut ());
    assert_empty(parent.path());
    refused.unwrap_err().to_string()
}

fn assert_empty(dir: &Path) {
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn weights_that_are_not_finite_or_too_large_are_named_and_counted() {
    let tensor = "model.layers.2.feed_forward.w1.weight";
    let copy = copy_of("tiny-lfm2");
    overwrite(copy.path(), tensor, &[f32::NAN, 1.0, f32::INFINITY, -1e5, 65_536.0, 65_280.0]);
    let message = refusal(copy.path(), &ConvertOptions::default());
    assert!(message.starts_with(&format!("tensor `{tensor}` in ")), "{message}");
    assert!(message.contains("2 elements that are not finite and 2 beyond ±65504"), "{message}");
}

#[test]
fn a_tokenizer_or_template_that_could_not_be_run_is_refused_by_the_name_of_its_file() {
    let whole = fs::read(model_dir("tiny-lfm2").join("tokenizer.json")).unwrap();
    let damages: [(&str, &[u8]); 9] = [
        ("tokenizer.json", b""),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\x8f\xff\x00\x13"),
        ("tokenizer.json", &whole[..whole.len() / 2]),
        ("tokenizer_config.json", b"{\"bos_token\": "),
        ("tokenizer_config.json", b"[]"),
        ("chat_template.jinja", b"\xff\xfe"),
        ("chat_template.jinja", b"{{"),
        ("chat_template.jinja", b"{% for m in messages %}"),
    ];
    for (file, content) in damages {
        let copy = copy_of("tiny-lfm2");
        fs::write(copy.path().join(file), content).unwrap();
        let message = refusal(copy.path(), &ConvertOptions::default());
        assert!(message.contains(file), "{file} {content:?}: {message}");
    }
}

#[test]
fn tokens_that_the_model_has_no_embedding_for_are_counted_in_a_note() {
    let copy = copy_of("tiny-lfm2");
    let path = copy.path().join("tokenizer.json");
    let mut tokenizer: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut added = tokenizer["added_tokens"][0].clone();
    let checkpoint = Checkpoint::open(copy.path()).unwrap();
    let vocab_size = checkpoint.config().vocab_size;
    for number in 0..2 {
        added["content"] = format!("<|foreign_{number}|>").into();
        added["id"] = (vocab_size + number).into();
        tokenizer["added_tokens"].as_array_mut().unwrap().push(added.clone());
    }
    let options = ConvertOptions { decode_only: true, ..ConvertOptions::default() };
    assert_eq!(convert_checkpoint(&checkpoint, &options).notes, []);
    fs::write(&path, tokenizer.to_string()).unwrap();
    let notes = convert_checkpoint(&checkpoint, &options).notes;
    assert_eq!(notes, [Note::TokensOutsideVocabulary { count: 2, vocab_size }]);
}

#[test]
fn options_are_refused_before_anything_is_read() {
    let message =
        refusal(&model_dir("tiny-lfm2"), &ConvertOptions { ctx: vec![0], ..ConvertOptions::default() });
    assert_eq!(message, "--ctx must be 1 to 1048576, found 0");
}

#[test]
fn what_exists_is_replaced_by_force_only() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("bundle");
    let options = ConvertOptions { decode_only: true, ..ConvertOptions::default() };
    convert_model("micro/lfm2-old-config", &out, &options).unwrap();
    let again = convert_model("micro/lfm3-window8", &out, &options).unwrap_err();
    assert!(matches!(again, ConvertError::Exists { .. }));
    assert_eq!(lone_bundle::Bundle::open(&out).unwrap().model.model_type, "lfm2");
    convert_model("micro/lfm3-window8", &out, &ConvertOptions { force: true, ..options }).unwrap();
    assert_eq!(lone_bundle::Bundle::open(&out).unwrap().model.model_type, "lfm3");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}

/// Cancels when it has been asked so often.
struct CancelAt {
    questions_left: std::cell::Cell<u32>,
    phase: Option<Phase>,
}

impl Progress for CancelAt {
    fn begin(&mut self, phase: Phase, _: u64) {
        self.phase = Some(phase);
    }

    fn advance(&mut self, _: u64) {}

    fn is_cancelled(&self) -> bool {
        let left = self.questions_left.get();
        self.questions_left.set(left.saturating_sub(1));
        left == 0
    }
}

#[test]
fn a_conversion_can_be_cancelled_at_any_block_and_leaves_nothing() {
    let checkpoint = Checkpoint::open(&model_dir("micro/lfm3-window8")).unwrap();
    let options = ConvertOptions { ctx: vec![32], prefill: vec![4], ..ConvertOptions::default() };
    let mut last_phase = None;
    for questions in (0..).step_by(4) {
        let parent = tempfile::tempdir().unwrap();
        let mut progress = CancelAt { questions_left: questions.into(), phase: None };
        match convert(&checkpoint, &parent.path().join("new/bundle"), &options, &mut progress) {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, ConvertError::Cancelled), "{error}"),
        }
        assert_empty(parent.path());
        last_phase = progress.phase;
    }
    assert_eq!(last_phase, Some(Phase::Write));
}
