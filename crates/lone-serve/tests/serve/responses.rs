//! Responses, whole and as events.

use serde_json::{Value, json};

use crate::host::Host;

const FRANCE: &str = "The capital of France is Paris.";

fn text_of(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

fn flat_tools() -> Value {
    let tools = crate::chat::tools();
    let flat = tools.as_array().unwrap().iter().map(|tool| {
        let mut flat = tool["function"].clone();
        flat["type"] = "function".into();
        flat
    });
    flat.collect()
}

#[test]
fn a_response_has_openais_shape() {
    let response =
        Host::new().post("/v1/responses", &json!({"input": "What is the capital of France?"})).json(200);
    assert_eq!((&response["object"], &response["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(text_of(&response), FRANCE);
    assert_eq!(response["output"][0]["type"], "message");
    assert_eq!(response["usage"]["input_tokens"], 16);
}

#[test]
fn events_tell_the_same_in_order() {
    let host = Host::new();
    let events =
        host.stream("/v1/responses", &json!({"input": "What is the capital of France?", "stream": true}));
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    let last = [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds[kinds.len() - 4..], last);
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    assert_eq!(deltas.map(|event| event["delta"].as_str().unwrap()).collect::<String>(), FRANCE);
    assert_eq!(text_of(&events.last().unwrap()["response"]), FRANCE);
    assert!(events.iter().enumerate().all(|(i, event)| event["sequence_number"] == i));
}

#[test]
fn settings_come_back_as_they_were_sent() {
    let host = Host::new();
    let mut body = json!({"input": "What is the capital of France?", "temperature": 0.3, "top_p": 0.9});
    let whole = host.post("/v1/responses", &body).json(200);
    body["stream"] = true.into();
    let events = host.stream("/v1/responses", &body);
    for response in [&whole, &events[0]["response"]] {
        assert_eq!((&response["temperature"], &response["top_p"]), (&json!(0.3), &json!(0.9)));
    }
}

#[test]
fn an_answer_that_is_cut_off_is_incomplete_and_so_is_its_last_item() {
    let host = Host::new();
    let body = json!({"input": "What is the capital of France?", "max_output_tokens": 3, "stream": true});
    let events = host.stream("/v1/responses", &body);
    let [.., done, last] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (&done["type"], &done["item"]["status"]),
        (&json!("response.output_item.done"), &json!("incomplete"))
    );
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(last["response"]["output"][0]["status"], "incomplete");
}

#[test]
fn a_tool_goes_round() {
    let host = Host::new();
    let mut input = vec![json!({"role": "user", "content": "What is the weather in Berlin?"})];
    let response = host.post("/v1/responses", &json!({"input": input, "tools": flat_tools()})).json(200);
    let call = response["output"][0].clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("get_weather")));
    assert_eq!(call["arguments"], r#"{"city":"Berlin"}"#);
    input.push(call.clone());
    let output = "{\"city\": \"Berlin\", \"sky\": \"foggy\", \"degrees\": 10}";
    input.push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": output}));
    let response = host.post("/v1/responses", &json!({"input": input, "tools": flat_tools()})).json(200);
    assert_eq!(text_of(&response), "It is 10 degrees and foggy in Berlin.");
}

#[test]
fn a_form_is_kept_and_a_limit_leaves_the_response_incomplete() {
    let host = Host::new();
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "name": "person", "schema": schema, "strict": true});
    let asked = json!({"input": "Write JSON with name Linus and age 16.", "text": {"format": format}});
    assert_eq!(text_of(&host.post("/v1/responses", &asked).json(200)), r#"{"name": "Linus", "age": 16}"#);
    let short = host
        .post("/v1/responses", &json!({"input": "Count from 3 to 20.", "max_output_tokens": 2}))
        .json(200);
    assert_eq!(short["status"], "incomplete");
    assert_eq!(short["incomplete_details"]["reason"], "max_output_tokens");
}
