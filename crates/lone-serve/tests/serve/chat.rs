//! Chat completions: answers, streams, tools, log probabilities.

use serde_json::{Value, json};

use crate::host::{CTX, Host};

const FRANCE: &str = "The capital of France is Paris.";

fn france(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "What is the capital of France?"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub fn tools() -> Value {
    let function = |name: &str, description: &str, properties: Value| {
        let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
        let parameters = json!({"type": "object", "properties": properties, "required": required});
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
    };
    json!([
        function("get_weather", "Get the weather in a city", json!({"city": {"type": "string"}})),
        function(
            "multiply",
            "Multiply two numbers",
            json!({"a": {"type": "integer"}, "b": {"type": "integer"}})
        ),
    ])
}

fn content(chunks: &[Value]) -> String {
    let deltas = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    deltas.collect()
}

#[test]
fn an_answer_has_openais_shape_and_says_what_it_cost() {
    let host = Host::new();
    let answer = host
        .chat(&france(json!({"model": "tiny-lfm3", "user": "me", "metadata": {"a": "b"}, "store": false})));
    assert_eq!(answer["object"], "chat.completion");
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"], json!({"role": "assistant", "content": FRANCE, "refusal": null}));
    assert_eq!((&choice["finish_reason"], &choice["logprobs"]), (&json!("stop"), &Value::Null));
    let usage = &answer["usage"];
    assert_eq!(usage["prompt_tokens"], 16);
    assert_eq!(usage["total_tokens"].as_u64(), Some(16 + usage["completion_tokens"].as_u64().unwrap()));
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 0);
    assert!(answer["timings"]["predicted_per_second"].as_f64().unwrap() > 0.0);
    let again = host.chat(&france(json!({})));
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], 16);
}

#[test]
fn every_chunk_says_what_was_used_so_far_if_asked() {
    let host = Host::new();
    let options = json!({"include_usage": true, "continuous_usage_stats": true});
    let chunks =
        host.stream("/v1/chat/completions", &france(json!({"stream": true, "stream_options": options})));
    let used = |chunk: &Value| chunk["usage"]["completion_tokens"].as_u64();
    let counts: Vec<u64> = chunks.iter().filter_map(used).collect();
    assert!(counts.len() > 3 && counts.is_sorted() && counts[0] <= 2, "{counts:?}");
    let whole = host.chat(&france(json!({})));
    assert_eq!(counts.last().copied(), used(&whole));
    assert!(
        chunks
            .iter()
            .filter(|chunk| used(chunk).is_some())
            .all(|chunk| chunk["usage"]["prompt_tokens"] == 16)
    );
}

#[test]
fn a_stop_string_ends_a_stream_and_nothing_of_it_is_sent() {
    let host = Host::new();
    for stop in ["Paris", "ce is Pa", "."] {
        let chunks = host.stream("/v1/chat/completions", &france(json!({"stream": true, "stop": stop})));
        assert_eq!(content(&chunks), FRANCE.split(stop).next().unwrap());
    }
}

#[test]
fn a_stream_says_the_same_as_a_whole_answer() {
    let host = Host::new();
    let chunks = host.stream(
        "/v1/chat/completions",
        &france(json!({"stream": true, "stream_options": {"include_usage": true}})),
    );
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(content(&chunks), FRANCE);
    assert_eq!(chunks.last(), Some(&json!("[DONE]")));
    let [.., finish, usage, _] = &chunks[..] else { panic!("{chunks:?}") };
    assert_eq!(
        (&finish["choices"][0]["finish_reason"], &finish["choices"][0]["delta"]),
        (&json!("stop"), &json!({}))
    );
    assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &json!(16)));
    assert!(chunks[..chunks.len() - 2].iter().all(|chunk| chunk.get("usage").is_none()));
    assert!(chunks[1..].iter().filter(|chunk| chunk.is_object()).all(|chunk| chunk["id"] == chunks[0]["id"]));
}

#[test]
fn stop_strings_end_streams_with_nothing_past_them() {
    let host = Host::new();
    for (stop, expected) in
        [(json!("of Fr"), "The capital "), (json!(["zzz", " is"]), "The capital of France")]
    {
        let chunks = host.stream("/v1/chat/completions", &france(json!({"stream": true, "stop": stop})));
        assert_eq!(content(&chunks), expected);
        assert_eq!(host.chat(&france(json!({"stop": stop})))["choices"][0]["message"]["content"], expected);
    }
}

#[test]
fn a_limit_ends_an_answer_by_length() {
    let answer = Host::new().chat(&france(json!({"max_tokens": 2})));
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 2);
}

#[test]
fn a_full_context_ends_an_answer_by_length_and_longer_prompts_are_refused() {
    let host = Host::new();
    let never = json!({"7": -100, "2": -100});
    let answer = host.chat(&france(json!({"logit_bias": never})));
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["total_tokens"], CTX + 1);
    let long = json!({"messages": [{"role": "user", "content": "word ".repeat(CTX)}]});
    let refusal = host.post("/v1/chat/completions", &long).json(400);
    assert_eq!(refusal["error"]["code"], "context_length_exceeded");
}

#[test]
fn several_answers_have_seeds_of_their_own_and_read_the_prompt_once() {
    let host = Host::new();
    // Against a model that is sure of itself, some tokens are made about as likely as its own.
    let bias: serde_json::Map<String, serde_json::Value> =
        (300..400).map(|token| (token.to_string(), json!(30))).collect();
    let asked = |n| france(json!({"n": n, "temperature": 2, "seed": 5, "max_tokens": 6, "logit_bias": bias}));
    let answer = host.chat(&asked(3));
    let texts: Vec<_> = (0..3).map(|i| answer["choices"][i]["message"]["content"].clone()).collect();
    assert!(texts[0] != texts[1] || texts[1] != texts[2], "{texts:?}");
    assert_eq!(answer["usage"]["prompt_tokens"], host.chat(&asked(1))["usage"]["prompt_tokens"]);
    assert_eq!(answer["timings"]["prompt_n"], answer["usage"]["prompt_tokens"]);
    let again = host.chat(&asked(3));
    assert_eq!((0..3).map(|i| again["choices"][i]["message"]["content"].clone()).collect::<Vec<_>>(), texts);
    let indices: Vec<_> = (0..3).map(|i| answer["choices"][i]["index"].clone()).collect();
    assert_eq!(indices, [json!(0), json!(1), json!(2)]);
}

#[test]
fn several_answers_stream_each_under_its_index() {
    let host = Host::new();
    let chunks = host.stream(
        "/v1/chat/completions",
        &france(json!({"n": 3, "stream": true, "stream_options": {"include_usage": true}})),
    );
    for index in 0..3 {
        let mine: Vec<Value> =
            chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == index).cloned().collect();
        assert_eq!(mine[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(content(&mine), FRANCE);
        assert_eq!(mine.last().unwrap()["choices"][0]["finish_reason"], "stop");
    }
    assert_eq!(chunks[chunks.len() - 2]["usage"]["prompt_tokens"], 16);
}

#[test]
fn chats_that_grow_in_turns_are_read_only_where_they_are_new() {
    let host = Host::new();
    let mut chats = [vec![], vec![]];
    let mut known = [0, 0];
    let turns = [
        ["What is the capital of France?", "What is 3 + 4?"],
        ["Count from 3 to 9.", "What is 2 + 2?"],
        ["What is 5 + 1?", "Count from 1 to 4."],
    ];
    for questions in turns {
        for (chat, question) in questions.into_iter().enumerate() {
            chats[chat].push(json!({"role": "user", "content": question}));
            let answer = host.chat(&json!({"messages": chats[chat]}));
            let usage = &answer["usage"];
            let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
            assert!(cached >= known[chat], "{cached} of {} for {question}", known[chat]);
            assert_eq!(answer["timings"]["prompt_n"], usage["prompt_tokens"].as_u64().unwrap() - cached);
            // The next prompt goes on behind the end of this answer, whose last token it has still to read.
            known[chat] = usage["total_tokens"].as_u64().unwrap() - 1;
            chats[chat].push(answer["choices"][0]["message"].clone());
        }
    }
}

#[test]
fn logprobs_are_one_entry_a_token_whole_or_streamed() {
    let host = Host::new();
    let asked = json!({"logprobs": true, "top_logprobs": 2});
    let answer = host.chat(&france(asked.clone()));
    let entries = answer["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
    assert_eq!(entries.len() as u64 + 1, answer["usage"]["completion_tokens"].as_u64().unwrap());
    let text: String = entries.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
    assert_eq!(text, FRANCE);
    for entry in &entries {
        assert_eq!(entry["top_logprobs"].as_array().unwrap().len(), 2);
        assert_eq!(entry["top_logprobs"][0]["logprob"], entry["logprob"], "greedy takes the likeliest");
        assert!(entry["logprob"].as_f64().unwrap() <= 0.0);
        assert_eq!(entry["bytes"], json!(entry["token"].as_str().unwrap().as_bytes()));
    }
    let mut streamed = asked;
    streamed["stream"] = true.into();
    let chunks = host.stream("/v1/chat/completions", &france(streamed));
    let of_chunks = chunks.iter().filter_map(|chunk| chunk["choices"][0]["logprobs"]["content"].as_array());
    assert_eq!(of_chunks.flatten().cloned().collect::<Vec<_>>(), entries);
}

#[test]
fn tools_are_called_and_their_results_are_told() {
    for name in ["tiny-lfm2", "tiny-lfm3"] {
        let host = Host::with(name, Default::default(), Default::default());
        let mut messages = vec![json!({"role": "user", "content": "What is 549 times 506?"})];
        let answer = host.chat(&json!({"messages": messages, "tools": tools()}));
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls", "{answer}");
        let message = answer["choices"][0]["message"].clone();
        assert_eq!(message["content"], Value::Null);
        let call = &message["tool_calls"][0];
        assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("multiply")));
        assert_eq!(call["function"]["arguments"], r#"{"a":549,"b":506}"#);
        messages.push(message.clone());
        messages
            .push(json!({"role": "tool", "tool_call_id": call["id"], "content": "{\"product\": 277794}"}));
        let answer = host.chat(&json!({"messages": messages, "tools": tools()}));
        assert_eq!(answer["choices"][0]["message"]["content"], "549 times 506 is 277794.");
    }
}

#[test]
fn a_streamed_call_is_one_delta_and_without_tools_it_is_text() {
    let host = Host::new();
    let messages = json!([{"role": "user", "content": "What is the weather in Berlin?"}]);
    let chunks =
        host.stream("/v1/chat/completions", &json!({"messages": messages, "tools": tools(), "stream": true}));
    let calls: Vec<_> =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array()).collect();
    assert_eq!(calls.len(), 1);
    assert_eq!((&calls[0][0]["index"], &calls[0][0]["function"]["name"]), (&json!(0), &json!("get_weather")));
    assert_eq!(calls[0][0]["function"]["arguments"], r#"{"city":"Berlin"}"#);
    assert_eq!(content(&chunks), "");
    let system = format!(
        "List of tools: [{}]",
        tools().as_array().unwrap().iter().map(python_json).collect::<Vec<_>>().join(", ")
    );
    let plain = json!({"messages": [{"role": "system", "content": system}, messages[0]]});
    let text = host.chat(&plain)["choices"][0]["message"]["content"].clone();
    assert_eq!(text, "<|tool_call_start|>[get_weather(city=\"Berlin\")]<|tool_call_end|>");
}

/// As the template's `tojson` writes it.
fn python_json(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(python_json).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), python_json(value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}
