//! What is wrong is refused by name; nothing is ignored in silence.

use serde_json::{Value, json};

use crate::host::Host;

fn with(name: &str, value: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1});
    body[name] = value;
    body
}

#[test]
fn fields_out_of_range_or_of_the_wrong_type_are_named() {
    let host = Host::new();
    let table = [
        ("temperature", json!(2.5)),
        ("temperature", json!("warm")),
        ("top_p", json!(-0.1)),
        ("top_k", json!(-1)),
        ("min_p", json!(2)),
        ("repetition_penalty", json!(0)),
        ("presence_penalty", json!(3)),
        ("frequency_penalty", json!(-3)),
        ("logit_bias", json!({"x": 1})),
        ("logit_bias", json!({"7": 1, "07": 2})),
        ("logit_bias", json!({"99999": 1})),
        ("logit_bias", json!({"1": 101})),
        ("seed", json!(1.5)),
        ("stop", json!(5)),
        ("stop", json!(["a", "b", "c", "d", "e"])),
        ("stop", json!("")),
        ("n", json!(0)),
        ("n", json!(1000)),
        ("stream", json!("yes")),
        ("stream_options", json!({"include_usage": true})),
        ("max_tokens", json!(0)),
        ("max_tokens", json!(-1)),
        ("logprobs", json!(5)),
        ("top_logprobs", json!(2)),
        ("response_format", json!("json")),
        ("tools", json!({})),
        ("tool_choice", json!("required")),
        ("messages", json!([])),
        ("messages", json!("hello")),
        ("model", json!(5)),
        ("chat_template_kwargs", json!([])),
    ];
    for (name, value) in table {
        assert_eq!(host.post("/v1/chat/completions", &with(name, value.clone())).refused(), name, "{value}");
    }
}

#[test]
fn what_the_request_says_elsewhere_is_no_variable_of_the_template() {
    let host = Host::new();
    for name in ["messages", "tools", "add_generation_prompt"] {
        let body = with("chat_template_kwargs", json!({name: false}));
        for path in ["/v1/chat/completions", "/apply-template"] {
            let mut body = body.clone();
            if path == "/apply-template" {
                body.as_object_mut().unwrap().remove("max_tokens");
            }
            assert_eq!(host.post(path, &body).refused(), format!("chat_template_kwargs.{name}"));
        }
    }
}

#[test]
fn fields_that_are_not_supported_are_named() {
    let host = Host::new();
    for name in
        ["functions", "function_call", "audio", "prediction", "web_search_options", "verbosity", "surprise"]
    {
        assert_eq!(host.post("/v1/chat/completions", &with(name, json!({"a": 1}))).refused(), name);
    }
    let table = [
        ("echo", json!(true)),
        ("suffix", json!("x")),
        ("best_of", json!(3)),
        ("prompt", json!([])),
        ("prompt", json!({})),
        ("logprobs", json!(99)),
    ];
    for (name, value) in table {
        let mut body = json!({"prompt": "x", "max_tokens": 1});
        body[name] = value;
        assert_eq!(host.post("/v1/completions", &body).refused(), name);
    }
    for name in ["previous_response_id", "conversation", "prompt", "max_tool_calls"] {
        let mut body = json!({"input": "x"});
        body[name] = "y".into();
        assert_eq!(host.post("/v1/responses", &body).refused(), name);
    }
}

#[test]
fn every_field_of_the_document_is_known_to_the_server() {
    let host = Host::new();
    let document = host.get("/openapi.json").json(200);
    let schemas = &document["components"]["schemas"];
    for (path, schema) in [
        ("/v1/chat/completions", "ChatRequest"),
        ("/v1/completions", "CompletionRequest"),
        ("/v1/responses", "ResponsesRequest"),
        ("/apply-template", "TemplateRequest"),
    ] {
        let fields = properties(schemas, &schemas[schema]);
        assert!(fields.len() > 5, "{schema}: {fields:?}");
        for field in fields {
            let mut body =
                json!({"messages": [{"role": "user", "content": "x"}], "prompt": "x", "input": "x"});
            for other in ["messages", "prompt", "input"] {
                if !properties(schemas, &schemas[schema]).contains(&other.to_owned()) {
                    body.as_object_mut().unwrap().remove(other);
                }
            }
            // Of no field's type.
            body[&field] = json!([[["nonsense"]]]);
            let refusal = host.post(path, &body).json(400);
            assert_ne!(refusal["error"]["code"], "unsupported_parameter", "{schema}: {field}");
        }
    }
}

/// Names of a schema's properties, those of the parts it is put together from included.
fn properties(schemas: &Value, schema: &Value) -> Vec<String> {
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let mut names: Vec<String> = own.collect();
    for part in ["allOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()).flatten() {
        names.extend(properties(schemas, part));
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        names.extend(properties(schemas, &schemas[name]));
    }
    names
}

#[test]
fn every_status_of_a_refusal_is_in_the_document() {
    let document = Host::new().get("/openapi.json").json(200);
    let statuses = |path: &str, method: &str| -> Vec<String> {
        document["paths"][path][method]["responses"].as_object().unwrap().keys().cloned().collect()
    };
    for status in ["200", "400", "401", "408", "413", "415", "429", "500", "503", "504"] {
        assert!(statuses("/v1/chat/completions", "post").contains(&status.to_owned()), "{status}");
    }
    assert!(statuses("/v1/models", "get").contains(&"401".to_owned()));
}

#[test]
fn prompts_that_are_far_too_long_are_refused_unread() {
    let host = Host::new();
    let long = "a".repeat(4_000_000);
    let body = json!({"messages": [{"role": "user", "content": long}]});
    assert_eq!(host.post("/v1/chat/completions", &body).refused(), "messages");
    assert_eq!(host.post("/v1/responses", &json!({"input": long})).refused(), "input");
    assert_eq!(host.post("/v1/completions", &json!({"prompt": long})).refused(), "prompt");
    assert_eq!(host.post("/tokenize", &json!({"content": long})).refused(), "content");
    assert_eq!(host.post("/v1/completions", &json!({"prompt": [[]]})).refused(), "prompt");
}

#[test]
fn another_model_is_not_found_by_name() {
    let host = Host::new();
    let refusal = host.post("/v1/chat/completions", &with("model", json!("gpt-9"))).json(404);
    assert_eq!(
        (&refusal["error"]["code"], &refusal["error"]["param"]),
        (&json!("model_not_found"), &json!("model"))
    );
    assert_eq!(host.get("/v1/models/gpt-9").status, 404);
}

#[test]
fn bodies_that_are_no_json_objects_are_refused() {
    let host = Host::new();
    let json_type = [("content-type", "application/json")];
    for body in ["", "{", "[]", "\"x\"", "{\"a\": 1e999}"] {
        assert_eq!(host.post_text("/v1/completions", &json_type, body).status, 400, "{body}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(host.post_text("/v1/completions", &[("content-type", kind)], "{}").status, 415);
    }
    assert_eq!(
        host.post_text("/v1/completions", &[("content-type", "Application/JSON; charset=utf-8")], "{}")
            .refused(),
        "prompt"
    );
}
