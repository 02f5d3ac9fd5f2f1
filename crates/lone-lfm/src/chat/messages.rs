//! What transformers does to messages before a template sees them.

use serde_json::{Map, Value};

/// The names that reasoning has gone by, newest first.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Fields that are `null` are left out, and reasoning stands under both names that templates read.
pub(super) fn normalized(messages: &[Value]) -> Vec<Value> {
    messages
        .iter()
        .map(|message| message.as_object().map_or_else(|| message.clone(), normalized_message))
        .collect()
}

fn normalized_message(message: &Map<String, Value>) -> Value {
    let present = message.iter().filter(|(_, value)| !value.is_null());
    let reasoning = REASONING.iter().find_map(|name| message.get(*name).filter(|value| !value.is_null()));
    let Some(reasoning) = reasoning else {
        return present.map(|(name, value)| (name.clone(), value.clone())).collect();
    };
    let mut fields = Map::from_iter([("thinking".to_owned(), reasoning.clone())]);
    fields.extend(present.map(|(name, value)| (name.clone(), value.clone())));
    fields.insert("reasoning_content".to_owned(), reasoning.clone());
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_fields_are_dropped_and_reasoning_is_copied() {
        let messages = [json!({"role": "user", "content": null}), json!({"reasoning": "r", "content": "c"})];
        let expected = json!([{"role": "user"}, {"thinking": "r", "reasoning": "r", "content": "c", "reasoning_content": "r"}]);
        assert_eq!(Value::from(normalized(&messages)).to_string(), expected.to_string());
    }

    #[test]
    fn reasoning_that_is_there_stays_in_its_place() {
        let messages = [json!({"reasoning_content": "a", "role": "x", "thinking": "b"})];
        let expected = json!([{"thinking": "b", "reasoning_content": "a", "role": "x"}]);
        assert_eq!(Value::from(normalized(&messages)).to_string(), expected.to_string());
    }
}
