//! Messages of a conversation: checked, and written as the model's template reads them.

use lone_engine::ToolMarks;
use serde_json::{Map, Value, json};

use super::fields::{Fields, typed};
use crate::error::ApiError;

/// What a template makes of what models say.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// How calls of tools are written into `content` for a template that reads nothing else.
    pub(crate) written_calls: Option<ToolMarks>,
}

/// `messages` as the template takes them.
pub(crate) fn messages(messages: Vec<Value>, reading: &Reading) -> Result<Vec<Value>, ApiError> {
    if messages.is_empty() {
        return Err(ApiError::field("messages", "is empty"));
    }
    let each = messages.into_iter().enumerate();
    each.map(|(index, message)| Message::take(&format!("messages[{index}]"), message)?.render(reading))
        .collect()
}

/// Refuses a message that could not be part of a conversation; `path` is where it stands.
pub(crate) fn check_message(path: &str, message: &Value) -> Result<(), ApiError> {
    Message::take(path, message.clone()).map(drop)
}

/// One message, checked.
struct Message {
    role: &'static str,
    content: Option<String>,
    calls: Vec<Call>,
    /// Fields that a template may read, passed on as they are.
    others: Map<String, Value>,
}

struct Call {
    id: Option<String>,
    name: String,
    arguments: Value,
}

impl Message {
    fn take(path: &str, message: Value) -> Result<Self, ApiError> {
        let mut fields = Fields::from(typed::<Map<String, Value>>(path, message)?);
        let named = |error: ApiError| error.within(path);
        let role: String = fields.require("role").map_err(named)?;
        let role = match role.as_str() {
            // What OpenAI's newer models call it.
            "system" | "developer" => "system",
            "user" => "user",
            "assistant" => "assistant",
            "tool" => "tool",
            _ => {
                let problem = format!("is {role:?}, and must be system, developer, user, assistant or tool");
                return Err(ApiError::field(format!("{path}.role"), problem).coded("invalid_value"));
            }
        };
        let content = fields.take::<Value>("content").map_err(named)?;
        let content = content.map(|content| text_of(&format!("{path}.content"), content)).transpose()?;
        let mut calls = Vec::new();
        let mut others = Map::new();
        match role {
            "assistant" => {
                let given: Vec<Value> = fields.take("tool_calls").map_err(named)?.unwrap_or_default();
                for (index, call) in given.into_iter().enumerate() {
                    calls.push(Call::take(&format!("{path}.tool_calls[{index}]"), call)?);
                }
                keep::<String>(&mut fields, "reasoning_content", &mut others).map_err(named)?;
                fields.ignore(&["refusal", "annotations", "parsed"]);
            }
            "tool" => keep::<String>(&mut fields, "tool_call_id", &mut others).map_err(named)?,
            _ => {}
        }
        keep::<String>(&mut fields, "name", &mut others).map_err(named)?;
        fields.finish().map_err(named)?;
        if content.is_none() && calls.is_empty() {
            return Err(ApiError::field(format!("{path}.content"), "is missing"));
        }
        Ok(Message { role, content, calls, others })
    }

    fn render(self, reading: &Reading) -> Result<Value, ApiError> {
        let Message { role, content, calls, others } = self;
        let mut content = content.unwrap_or_default();
        let mut message = Map::from_iter([("role".to_owned(), Value::from(role))]);
        let mut tool_calls = Vec::new();
        match &reading.written_calls {
            Some(marks) if !calls.is_empty() => {
                let written: Vec<_> =
                    calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
                content.push_str(&marks.write(&written));
            }
            _ => tool_calls = calls.into_iter().map(Call::into_value).collect(),
        }
        message.insert("content".into(), content.into());
        if !tool_calls.is_empty() {
            message.insert("tool_calls".into(), tool_calls.into());
        }
        message.extend(others);
        Ok(Value::Object(message))
    }
}

impl Call {
    fn take(path: &str, call: Value) -> Result<Self, ApiError> {
        let mut fields = Fields::from(typed::<Map<String, Value>>(path, call)?);
        let named = |error: ApiError| error.within(path);
        fields.only("type", &[json!("function")]).map_err(named)?;
        fields.ignore(&["index"]);
        let id = fields.take("id").map_err(named)?;
        let mut function = Fields::from(fields.require::<Map<String, Value>>("function").map_err(named)?);
        fields.finish().map_err(named)?;
        let path = format!("{path}.function");
        let named = |error: ApiError| error.within(&path);
        let name = function.require("name").map_err(named)?;
        let arguments = function.require::<Value>("arguments").map_err(named)?;
        // What OpenAI's client adds when it has parsed an answer.
        function.ignore(&["parsed_arguments"]);
        function.finish().map_err(named)?;
        let arguments = match arguments {
            Value::String(json) if json.trim().is_empty() => json!({}),
            Value::String(json) => serde_json::from_str(&json).unwrap_or(Value::Null),
            arguments => arguments,
        };
        if !arguments.is_object() {
            return Err(ApiError::field(format!("{path}.arguments"), "is not a JSON object in a string"));
        }
        Ok(Call { id, name, arguments })
    }

    /// As transformers' templates take it: the arguments as an object.
    fn into_value(self) -> Value {
        let function = json!({"name": self.name, "arguments": self.arguments});
        let mut call = json!({"type": "function", "function": function});
        if let Some(id) = self.id {
            call["id"] = id.into();
        }
        call
    }
}

/// Passes a field on, if it is there.
fn keep<T: serde::de::DeserializeOwned + Into<Value>>(
    fields: &mut Fields,
    name: &str,
    others: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    if let Some(value) = fields.take::<T>(name)? {
        others.insert(name.into(), value.into());
    }
    Ok(())
}

/// Text, or the texts of a list of parts put together.
pub(crate) fn text_of(path: &str, content: Value) -> Result<String, ApiError> {
    let parts = match content {
        Value::String(text) => return Ok(text),
        Value::Array(parts) => parts,
        _ => return Err(ApiError::field(path, "is neither text nor a list of parts").coded("invalid_value")),
    };
    let mut text = String::new();
    for (index, part) in parts.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        let mut fields = Fields::from(typed::<Map<String, Value>>(&path, part)?);
        let named = |error: ApiError| error.within(&path);
        let kind: String = fields.require("type").map_err(named)?;
        let field = match kind.as_str() {
            "text" | "input_text" | "output_text" => "text",
            "refusal" => "refusal",
            _ => {
                let problem = format!("is {kind:?}; this model reads only text");
                return Err(ApiError::field(format!("{path}.type"), problem).coded("unsupported_value"));
            }
        };
        text.push_str(&fields.require::<String>(field).map_err(named)?);
        fields.ignore(&["annotations", "logprobs"]);
        fields.finish().map_err(named)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(message: Value, written: bool) -> Result<Value, String> {
        let marks = ToolMarks { start: "<s>".into(), end: "<e>".into() };
        let reading = Reading { written_calls: written.then_some(marks) };
        let mut rendered = messages(vec![message], &reading)
            .map_err(|error| serde_json::to_value(error.body()).unwrap()["error"]["param"].to_string())?;
        Ok(rendered.remove(0))
    }

    fn call() -> Value {
        json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}})
    }

    #[test]
    fn text_and_parts_are_the_same_content() {
        let parts = json!({"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        assert_eq!(render(parts, false).unwrap(), json!({"role": "system", "content": "ab"}));
    }

    #[test]
    fn calls_are_objects_for_templates_that_read_them_and_text_for_those_that_do_not() {
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call()], "refusal": null});
        let read = render(message.clone(), false).unwrap();
        assert_eq!(read["tool_calls"][0]["function"]["arguments"], json!({"a": 1}));
        assert_eq!(render(message, true).unwrap(), json!({"role": "assistant", "content": "<s>[f(a=1)]<e>"}));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let table = [
            (json!("text"), "messages[0]"),
            (json!({"role": "robot", "content": ""}), "messages[0].role"),
            (json!({"content": ""}), "messages[0].role"),
            (json!({"role": "user"}), "messages[0].content"),
            (json!({"role": "user", "content": 5}), "messages[0].content"),
            (json!({"role": "user", "content": "", "mood": 1}), "messages[0].mood"),
            (json!({"role": "user", "content": "", "tool_calls": [call()]}), "messages[0].tool_calls"),
            (json!({"role": "user", "content": [{"type": "image_url"}]}), "messages[0].content[0].type"),
            (json!({"role": "user", "content": [{"type": "text"}]}), "messages[0].content[0].text"),
            (
                json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "["}}]}),
                "messages[0].tool_calls[0].function.arguments",
            ),
            (json!({"role": "assistant", "tool_calls": [{"id": "x"}]}), "messages[0].tool_calls[0].function"),
        ];
        for (message, param) in table {
            assert_eq!(render(message.clone(), false), Err(format!("{param:?}")), "{message}");
        }
    }
}
