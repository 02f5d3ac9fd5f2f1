//! Encoding and decoding against transformers' ids, and every split of a stream.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn tiny() -> &'static Tokenizer {
    static TINY: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::open(&model("tiny-lfm3")).unwrap());
    &TINY
}

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

fn cases() -> Vec<(String, Vec<u32>)> {
    let text = std::fs::read_to_string(model("tiny-lfm3").join("tokenization.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let ids = |case: &Value| serde_json::from_value(case["ids"].clone()).unwrap();
    cases.iter().map(|case| (case["text"].as_str().unwrap().to_owned(), ids(case))).collect()
}

#[test]
fn texts_encode_to_transformers_tokens_and_back() {
    for name in ["tiny-lfm2", "tiny-lfm3"] {
        let tokenizer = Tokenizer::open(&model(name)).unwrap();
        for (text, ids) in cases() {
            assert_eq!(tokenizer.encode(&text).unwrap(), ids, "{text:?}");
            assert_eq!(tokenizer.decode(&ids, SpecialText::Keep), text);
        }
    }
}

#[test]
fn special_tokens_are_kept_or_skipped() {
    let tokenizer = tiny();
    let ids = tokenizer.encode("<|im_start|>user\nHi<|im_end|>").unwrap();
    assert_eq!(tokenizer.decode(&ids, SpecialText::Skip), "user\nHi");
    assert_eq!(tokenizer.token("<|im_end|>"), Some(7));
    assert_eq!(tokenizer.piece(7).as_deref(), Some("<|im_end|>"));
    assert!(tokenizer.is_special(7));
    assert!(!tokenizer.is_special(78));
    assert_eq!(
        (tokenizer.special_tokens().bos(), tokenizer.special_tokens().eos()),
        (Some("<|startoftext|>"), Some("<|im_end|>"))
    );
}

#[test]
fn tokens_outside_the_vocabulary_are_nothing() {
    let tokenizer = tiny();
    assert_eq!(tokenizer.vocab_size(), 1536);
    assert_eq!((tokenizer.piece(1536), tokenizer.token_bytes(u32::MAX)), (None, None));
    assert_eq!(tokenizer.decode(&[78, 1536, 78], SpecialText::Keep), "aa");
}

#[test]
fn a_stream_gives_every_character_once_and_whole() {
    let tokenizer = tiny();
    let text = "日本語 🧪 café";
    let mut stream = DecodeStream::new(SpecialText::Keep);
    let pieces: Vec<_> =
        tokenizer.encode(text).unwrap().iter().map(|&id| stream.push(tokenizer, id)).collect();
    assert_eq!(pieces.concat(), text);
    assert!(pieces.iter().any(String::is_empty), "some character spans tokens: {pieces:?}");
    assert!(pieces.iter().all(|piece| !piece.contains(char::REPLACEMENT_CHARACTER)));
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_character_cut_off_for_good_becomes_one_replacement() {
    let tokenizer = tiny();
    let ids = tokenizer.encode("語").unwrap();
    let mut stream = DecodeStream::new(SpecialText::Keep);
    assert_eq!(stream.push(tokenizer, ids[0]), "");
    assert_eq!(stream.clone().finish(), "\u{fffd}");
    // "a" shows that the rest never comes.
    assert_eq!(stream.push(tokenizer, 78), "\u{fffd}a");
}

#[test]
fn a_missing_or_damaged_tokenizer_is_told_apart() {
    let dir = tempfile::TempDir::new().unwrap();
    let refusal = || Tokenizer::open(dir.path()).unwrap_err();
    assert!(matches!(refusal(), TokenizerError::Missing { .. }));
    let path = dir.path().join("tokenizer.json");
    std::fs::write(&path, "{").unwrap();
    assert!(refusal().to_string().contains("tokenizer.json is not a usable tokenizer: "));
    let text = std::fs::read_to_string(model("tiny-lfm3").join("tokenizer.json")).unwrap();
    let mut tokenizer: Value = serde_json::from_str(&text).unwrap();
    tokenizer["decoder"] = serde_json::json!({"type": "Fuse"});
    std::fs::write(&path, tokenizer.to_string()).unwrap();
    assert!(refusal().to_string().ends_with("its decoder is not \"ByteLevel\""));
}

#[test]
fn settings_that_cut_or_pad_are_not_followed() {
    let text = std::fs::read_to_string(model("tiny-lfm3").join("tokenizer.json")).unwrap();
    let mut tokenizer: Value = serde_json::from_str(&text).unwrap();
    tokenizer["truncation"] = serde_json::json!(
        {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
    tokenizer["padding"] = serde_json::json!({"strategy": {"Fixed": 64}, "direction": "Left", "pad_to_multiple_of": null,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "<|pad|>"});
    let tokenizer = Tokenizer::from_json(tokenizer.to_string().as_bytes(), SpecialTokens::default()).unwrap();
    assert_eq!(tokenizer.encode("hello world").unwrap().len(), 7);
}

proptest! {
    #[test]
    fn a_stream_of_any_tokens_equals_the_crates_own_decoding(ids in proptest::collection::vec(0..1600u32, 0..40)) {
        let tokenizer = tiny();
        for (special, skip) in [(SpecialText::Keep, false), (SpecialText::Skip, true)] {
            prop_assert_eq!(tokenizer.decode(&ids, special), tokenizer.inner.decode(&ids, skip).unwrap());
        }
    }

    #[test]
    fn any_text_survives_a_round_trip(text in "\\PC{0,60}") {
        let tokenizer = tiny();
        let ids = tokenizer.encode(&text).unwrap();
        prop_assert_eq!(tokenizer.decode(&ids, SpecialText::Keep), text);
    }
}
