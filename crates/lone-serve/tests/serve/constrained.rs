//! Answers that must have a form have it, or end for want of room.

use lone_testing::validates;
use serde_json::{Value, json};

use crate::chat::tools;
use crate::host::Host;

fn ask(host: &Host, content: &str, more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": content}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    host.chat(&body)["choices"][0].take()
}

fn schema(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "thing", "schema": schema, "strict": true}})
}

#[test]
fn structured_answers_validate_whatever_was_asked_and_however_tokens_are_chosen() {
    let host = Host::new();
    let schemas = [
        json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name", "age"], "additionalProperties": false}),
        json!({"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 1, "maxItems": 3}),
        json!({"type": "object", "properties": {"kind": {"const": "x"}, "next": {"$ref": "#/$defs/n"}},
            "required": ["kind"], "$defs": {"n": {"anyOf": [{"type": "null"}, {"type": "number"}]}}}),
        json!({"type": "object", "properties": {"id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, "on": {"format": "date", "type": "string"},
            "size": {"type": "integer", "minimum": 3, "maximum": 17}, "step": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 9}},
            "required": ["id", "on", "size", "step"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"pet": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"enum": [1, 9]}}, "required": ["kind", "lives"], "additionalProperties": false},
            {"type": "object", "properties": {"kind": {"const": "dog"}, "good": {"type": "boolean"}}, "required": ["kind", "good"], "additionalProperties": false},
            {"type": "null"}]}}, "required": ["pet"], "additionalProperties": false}),
        json!({"allOf": [{"type": "array", "prefixItems": [{"type": "boolean"}, {"type": ["string", "null"], "maxLength": 4}]}, {"minItems": 2, "maxItems": 2}]}),
    ];
    let mut complete = 0;
    for (i, wanted) in schemas.iter().enumerate() {
        for (temperature, seed) in [(0.0, 1), (1.0, 2), (2.0, 3)] {
            let more = json!({"response_format": schema(wanted), "temperature": temperature, "seed": seed, "max_tokens": 120});
            let choice = ask(&host, "Write JSON with name Linus and age 16.", more);
            if choice["finish_reason"] == "length" {
                continue;
            }
            let text = choice["message"]["content"].as_str().unwrap();
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(validates(&value, wanted), "schema {i}: {text}");
            complete += 1;
        }
    }
    assert!(complete >= 12, "{complete}");
}

#[test]
fn a_model_that_would_answer_so_anyway_says_the_same() {
    let host = Host::new();
    let wanted = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false});
    for format in [schema(&wanted), json!({"type": "json_object"})] {
        let choice = ask(&host, "Write JSON with name Linus and age 16.", json!({"response_format": format}));
        assert_eq!(choice["message"]["content"], r#"{"name": "Linus", "age": 16}"#);
    }
}

#[test]
fn a_required_call_is_made_even_where_the_model_would_rather_talk() {
    let host = Host::new();
    let more = json!({"tools": tools(), "tool_choice": "required", "max_tokens": 100});
    let choice = ask(&host, "What is the capital of France?", more);
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    let more =
        json!({"tools": tools(), "tool_choice": {"type": "function", "function": {"name": "multiply"}}});
    let choice = ask(&host, "What is 12 times 13?", more);
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["function"], json!({"name": "multiply", "arguments": r#"{"a":12,"b":13}"#}));
}

#[test]
fn no_call_is_made_where_none_is_allowed() {
    let more = json!({"tools": tools(), "tool_choice": "none", "max_tokens": 40});
    let choice = ask(&Host::new(), "What is the weather in Berlin?", more);
    assert!(choice["message"].get("tool_calls").is_none(), "{choice}");
    assert!(!choice["message"]["content"].as_str().unwrap().contains("<|tool_call_start|>"));
}

#[test]
fn schemas_that_cannot_be_followed_are_refused_by_name() {
    let host = Host::new();
    let body = |format| json!({"messages": [{"role": "user", "content": "x"}], "response_format": format});
    let refused = |format| host.post("/v1/chat/completions", &body(format)).refused();
    assert_eq!(refused(schema(&json!({"type": "nonsense"}))), "response_format.json_schema.schema");
    assert_eq!(refused(schema(&json!({"oneOf": [{}, {}]}))), "response_format.json_schema.schema");
    assert_eq!(refused(schema(&json!({"$ref": "#"}))), "response_format.json_schema.schema");
    let chain = (0..1000).map(|i| (format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", (i + 1) % 1000)})));
    let chain = json!({"$ref": "#/$defs/d0", "$defs": chain.collect::<Value>()});
    assert_eq!(refused(schema(&chain)), "response_format.json_schema.schema");
    let patterns = (0..2000).map(|i| json!({"type": "string", "pattern": format!("^.*{i}.*$")}));
    let patterns = json!({"allOf": patterns.collect::<Value>()});
    assert_eq!(refused(schema(&patterns)), "response_format.json_schema.schema");
    assert_eq!(host.get("/health").status, 200);
}

#[test]
fn a_schema_that_turns_out_to_be_too_much_is_the_askers_fault_in_answers_and_in_streams() {
    let host = Host::new();
    let properties: Value = (0..700).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect();
    let wanted = schema(&json!({"type": "object", "properties": properties}));
    let mut body =
        json!({"messages": [{"role": "user", "content": "Write JSON."}], "response_format": wanted});
    let refused = host.post("/v1/chat/completions", &body).refused();
    assert_eq!(refused, "response_format.json_schema.schema");
    body["stream"] = true.into();
    let events = host.stream("/v1/chat/completions", &body);
    assert_eq!(events[events.len() - 2]["error"]["type"], "invalid_request_error");
    assert_eq!(host.get("/health").status, 200);
}

#[test]
fn of_a_form_and_tools_the_one_at_fault_is_named() {
    let host = Host::new();
    let tools = |parameters: Value| json!([{"type": "function", "function": {"name": "f", "parameters": parameters}}]);
    let (good, bad) = (json!({"type": "object"}), json!({"type": "object", "not": {}}));
    let refused = |wanted: &Value, parameters: &Value| {
        let body = json!({"messages": [{"role": "user", "content": "x"}], "response_format": schema(wanted),
            "tools": tools(parameters.clone())});
        host.post("/v1/chat/completions", &body).refused()
    };
    assert_eq!(refused(&good, &bad), "tools");
    assert_eq!(refused(&bad, &good), "response_format.json_schema.schema");
}

#[test]
fn marks_that_a_constrained_answer_spells_out_are_text() {
    let host = Host::new();
    let text = "<|tool_call_start|>[f()]<|tool_call_end|>";
    for choice in ["auto", "none"] {
        let more = json!({"response_format": schema(&json!({"const": text})), "tools": tools(), "tool_choice": choice,
            "logit_bias": {"10": -100}});
        let choice = ask(&host, "x", more);
        assert_eq!(choice["message"]["content"], json!(text).to_string(), "{choice}");
        assert_eq!(choice["finish_reason"], "stop");
    }
}

#[test]
fn characters_of_several_tokens_stream_whole() {
    let host = Host::new();
    let text = "naïve 世界 😀 done";
    let body = json!({"messages": [{"role": "user", "content": "x"}], "stream": true,
        "response_format": schema(&json!({"const": text}))});
    let chunks = host.stream("/v1/chat/completions", &body);
    let pieces = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    let pieces: Vec<_> = pieces.collect();
    assert_eq!(pieces.concat(), format!("\"{text}\""));
    assert!(pieces.iter().all(|piece| !piece.contains('\u{fffd}')), "{pieces:?}");
}

#[test]
fn nothing_can_cut_a_constrained_answer_short_but_its_length() {
    let host = Host::new();
    for more in [
        json!({"response_format": {"type": "json_object"}}),
        json!({"tools": tools(), "tool_choice": "required"}),
    ] {
        let mut body = json!({"messages": [{"role": "user", "content": "x"}], "stop": [","]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(host.post("/v1/chat/completions", &body).refused(), "stop");
    }
}
