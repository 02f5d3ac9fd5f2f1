//! A tokenizer of any vocabulary size: LFM's special tokens, the 256 bytes, and words to fill it up.
//!
//! There are no merges, so text becomes one token a byte; the filler words are only ever said by the model.

use anyhow::ensure;
use serde_json::{Map, Value, json};

/// In the order of their ids, from 0.
const SPECIAL: [&str; 14] = [
    "<|pad|>",
    "<|startoftext|>",
    "<|endoftext|>",
    "<|fim_pre|>",
    "<|fim_mid|>",
    "<|fim_suf|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|tool_list_start|>",
    "<|tool_list_end|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|tool_response_start|>",
    "<|tool_response_end|>",
];

pub(super) const CHAT_TEMPLATE: &str = include_str!("chat_template.jinja");

/// The content of tokenizer.json.
pub(super) fn tokenizer(vocab: usize) -> anyhow::Result<Value> {
    let needed = SPECIAL.len() + 256;
    ensure!(vocab >= needed, "a tokenizer has at least {needed} tokens, and the vocabulary {vocab}");
    let tokens = (SPECIAL.iter().map(ToString::to_string))
        .chain((0..=255).map(|byte| byte_symbol(byte).to_string()))
        .chain((needed..vocab).map(|id| format!("{}w{id}", byte_symbol(b' '))));
    let vocabulary: Map<String, Value> = tokens.zip(0..).map(|(token, id)| (token, json!(id))).collect();
    let added: Vec<Value> = SPECIAL.iter().zip(0..).map(|(token, id)| added_token(token, id)).collect();
    let byte_level = |add_prefix_space| {
        json!({
            "type": "ByteLevel",
            "add_prefix_space": add_prefix_space,
            "trim_offsets": true,
            "use_regex": true,
        })
    };
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": byte_level(false),
        "post_processor": null,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": false,
            "vocab": vocabulary,
            "merges": [],
        },
    }))
}

fn added_token(content: &str, id: u32) -> Value {
    json!({
        "id": id,
        "content": content,
        "single_word": false,
        "lstrip": false,
        "rstrip": false,
        "normalized": false,
        "special": true,
    })
}

/// The printable character that stands for a byte in byte-level vocabularies: itself if it has one in Latin-1,
/// else the next free one from U+0100 on.
fn byte_symbol(byte: u8) -> char {
    let printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(&byte) {
        return char::from(byte);
    }
    let earlier = (0..byte).filter(|byte| !printable(byte)).count() as u32;
    char::from_u32(0x100 + earlier).expect("there are fewer than 256 of them")
}

/// The content of tokenizer_config.json.
pub(super) fn tokenizer_config() -> Value {
    json!({
        "bos_token": "<|startoftext|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|pad|>",
        "clean_up_tokenization_spaces": false,
        "tokenizer_class": "PreTrainedTokenizerFast",
    })
}

/// The content of generation_config.json: greedy, and two tokens that end an answer.
pub(super) fn generation_config() -> Value {
    json!({ "bos_token_id": 1, "eos_token_id": [7, 2], "pad_token_id": 0, "do_sample": false })
}
