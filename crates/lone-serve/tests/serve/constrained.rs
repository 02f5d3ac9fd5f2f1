//! Answers that must have a form have it, or end for want of room.

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

/// Whether somebody else's reading of JSON Schema agrees.
fn validates(value: &Value, schema: &Value) -> bool {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema.json", schema.clone()).unwrap();
    let index = compiler.compile("schema.json", &mut schemas).unwrap();
    schemas.validate(value, index).is_ok()
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
    assert!(complete >= 5, "{complete}");
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
}
