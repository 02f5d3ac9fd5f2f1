//! The items of a response's input, as messages of a conversation.

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::request::{Fields, check_message, text_of, typed};

/// The messages `input` comes to.
pub(super) fn messages_of(input: &Value) -> Result<Vec<Value>, ApiError> {
    match input {
        Value::String(text) => Ok(vec![json!({"role": "user", "content": text})]),
        Value::Array(items) => {
            let mut messages = Vec::new();
            for (index, item) in items.iter().enumerate() {
                add(&format!("input[{index}]"), item.clone(), &mut messages)?;
            }
            Ok(messages)
        }
        _ => Err(ApiError::field("input", "is neither text nor a list of items").coded("invalid_value")),
    }
}

fn add(path: &str, item: Value, messages: &mut Vec<Value>) -> Result<(), ApiError> {
    let mut fields = Fields::from(typed::<Map<String, Value>>(path, item)?);
    let at = |error: ApiError| error.within(path);
    let kind = fields.take::<String>("type").map_err(at)?;
    // What an earlier response called the item, and how that ended.
    fields.ignore(&["id", "status"]);
    match kind.as_deref() {
        None | Some("message") => {
            let role: String = fields.require("role").map_err(at)?;
            let content: Value = fields.require("content").map_err(at)?;
            let message = json!({"role": role, "content": content});
            check_message(path, &message)?;
            messages.push(message);
        }
        Some("function_call") => {
            let id: String = fields.require("call_id").map_err(at)?;
            let name: String = fields.require("name").map_err(at)?;
            let arguments: String = fields.require("arguments").map_err(at)?;
            if serde_json::from_str::<Map<String, Value>>(&arguments).is_err() {
                return Err(ApiError::field(format!("{path}.arguments"), "is not a JSON object in a string"));
            }
            let function = json!({"name": name, "arguments": arguments});
            add_call(json!({"id": id, "type": "function", "function": function}), messages);
        }
        Some("function_call_output") => {
            let id: String = fields.require("call_id").map_err(at)?;
            let output: Value = fields.require("output").map_err(at)?;
            let output = text_of(&format!("{path}.output"), output)?;
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
        }
        Some("reasoning") => fields.ignore(&["summary", "content", "encrypted_content"]),
        Some(kind) => {
            let problem = format!("is {kind:?}, which this server does not support");
            return Err(ApiError::field(format!("{path}.type"), problem).coded("unsupported_value"));
        }
    }
    fields.finish().map_err(at)
}

/// Calls belong to what the assistant said just before.
fn add_call(call: Value, messages: &mut Vec<Value>) {
    match messages.last_mut() {
        Some(last) if last["role"] == "assistant" => match last["tool_calls"].as_array_mut() {
            Some(calls) => calls.push(call),
            None => last["tool_calls"] = json!([call]),
        },
        _ => messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_join_what_was_said_before_and_outputs_are_a_tools_messages() {
        let input = json!([
            {"role": "user", "content": "Weather?"},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}", "id": "x", "status": "completed"},
            {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "sunny"},
        ]);
        let messages = messages_of(&input).unwrap();
        let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool"]);
        assert_eq!(messages[1]["tool_calls"][1]["function"]["name"], "g");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let table = [
            (json!(5), "input"),
            (json!([5]), "input[0]"),
            (json!([{"type": "image"}]), "input[0].type"),
            (json!([{"type": "function_call", "name": "f"}]), "input[0].call_id"),
            (json!([{"role": "user"}]), "input[0].content"),
            (json!([{"role": "user", "content": [{"type": "input_image"}]}]), "input[0].content[0].type"),
            (
                json!([{"type": "function_call", "call_id": "", "name": "f", "arguments": "["}]),
                "input[0].arguments",
            ),
            (json!([{"type": "function_call_output", "call_id": "", "output": 5}]), "input[0].output"),
            (json!([{"role": "user", "content": "", "mood": 1}]), "input[0].mood"),
        ];
        for (input, param) in table {
            let error = serde_json::to_value(messages_of(&input).unwrap_err().body()).unwrap();
            assert_eq!(error["error"]["param"], param);
        }
    }
}
