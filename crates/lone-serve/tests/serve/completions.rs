//! Completions of texts.

use serde_json::{Value, json};

use crate::host::Host;

fn complete(host: &Host, body: &Value) -> Value {
    host.post("/v1/completions", body).json(200)
}

#[test]
fn text_and_its_tokens_are_the_same_prompt() {
    let host = Host::new();
    let tokens = host.post("/tokenize", &json!({"content": "The capital of", "add_special": true})).json(200);
    let by_text = complete(&host, &json!({"prompt": "The capital of", "max_tokens": 6}));
    let by_tokens = complete(&host, &json!({"prompt": tokens["tokens"], "max_tokens": 6}));
    assert_eq!(by_text["choices"], by_tokens["choices"]);
    assert_eq!(by_text["object"], "text_completion");
    assert_eq!(
        by_text["usage"]["prompt_tokens"].as_u64(),
        Some(tokens["tokens"].as_array().unwrap().len() as u64)
    );
}

#[test]
fn an_answer_has_16_tokens_unless_it_is_said() {
    let host = Host::new();
    let body = json!({"prompt": "The capital", "logit_bias": {"7": -100, "2": -100}});
    let answer = complete(&host, &body);
    assert_eq!(answer["usage"]["completion_tokens"], 16);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[test]
fn several_prompts_have_their_answers_in_order() {
    let host = Host::new();
    let alone = |prompt: &str| {
        complete(&host, &json!({"prompt": prompt, "max_tokens": 4}))["choices"][0]["text"].clone()
    };
    let expected = [alone("The capital of France"), alone("Count from 3")];
    let both = complete(
        &host,
        &json!({"prompt": ["The capital of France", "Count from 3"], "max_tokens": 4, "n": 2}),
    );
    let texts: Vec<_> =
        both["choices"].as_array().unwrap().iter().map(|choice| choice["text"].clone()).collect();
    assert_eq!(texts, [&expected[0], &expected[0], &expected[1], &expected[1]].map(Clone::clone));
}

#[test]
fn a_prompt_counts_as_often_as_it_is_given_and_once_for_all_its_answers() {
    let host = Host::new();
    let tokens = |prompt: Value, n: u32| {
        let body = json!({"prompt": prompt, "n": n, "max_tokens": 1});
        complete(&host, &body)["usage"]["prompt_tokens"].as_u64().unwrap()
    };
    let one = tokens(json!("a"), 1);
    assert_eq!(tokens(json!(["a", "a", "b", "a"]), 1), 4 * one);
    assert_eq!(tokens(json!(["a", "a"]), 3), 2 * one);
}

#[test]
fn logprobs_come_in_columns_with_offsets_into_the_text() {
    let host = Host::new();
    let body = json!({"prompt": "The capital of France is", "max_tokens": 6, "logprobs": 2});
    let answer = complete(&host, &body);
    let choice = &answer["choices"][0];
    let text = choice["text"].as_str().unwrap();
    let logprobs = &choice["logprobs"];
    let tokens: Vec<_> =
        logprobs["tokens"].as_array().unwrap().iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!(tokens.concat(), text);
    for (i, token) in tokens.iter().enumerate() {
        let offset = usize::try_from(logprobs["text_offset"][i].as_u64().unwrap()).unwrap();
        assert_eq!(text.chars().skip(offset).take(token.chars().count()).collect::<String>(), *token);
        assert_eq!(logprobs["top_logprobs"][i][token], logprobs["token_logprobs"][i]);
    }
}

#[test]
fn a_stream_says_the_same() {
    let host = Host::new();
    let whole = complete(&host, &json!({"prompt": "The capital of France is", "max_tokens": 8}));
    let chunks = host.stream(
        "/v1/completions",
        &json!({"prompt": "The capital of France is", "max_tokens": 8, "stream": true}),
    );
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(whole["choices"][0]["text"], text);
    assert_eq!(chunks.last(), Some(&json!("[DONE]")));
}
