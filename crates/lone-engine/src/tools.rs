//! Calls of tools, as the models write them.
//!
//! Between two marks of the vocabulary stands a Python list of calls, `[f(a="x", n=3)]`, or a JSON list of objects with
//! `name` and `arguments`. A call is read by its structure, not by looking for the closing mark, so a mark inside a
//! string argument is part of the string.

mod calls;
mod literal;

use lone_lfm::Tokenizer;
use serde_json::Value;

pub(crate) use calls::{Block, read_block};
use literal::python_literal;

/// A tool the model may call, as far as reading its calls needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Names of its parameters, in the order in which arguments without a name are given.
    pub parameters: Vec<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// A JSON object.
    pub arguments: String,
}

/// The tokens that calls stand between, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolMarks {
    /// In front of the calls.
    pub start: String,
    /// Behind them.
    pub end: String,
}

impl ToolMarks {
    /// Those of a vocabulary, if it has them.
    pub fn of(tokenizer: &Tokenizer) -> Option<Self> {
        let marks = ToolMarks { start: "<|tool_call_start|>".into(), end: "<|tool_call_end|>".into() };
        let has = |mark: &str| tokenizer.token(mark).is_some();
        (has(&marks.start) && has(&marks.end)).then_some(marks)
    }

    /// `calls` as the model would have written them, marks included. Calls that Python's syntax has no words for are
    /// written as JSON.
    pub fn write(&self, calls: &[(&str, &Value)]) -> String {
        let python: Option<Vec<String>> =
            calls.iter().map(|(name, arguments)| written(name, arguments)).collect();
        let list = python.unwrap_or_else(|| {
            let json = |(name, arguments): &(&str, &Value)| {
                serde_json::json!({"name": name, "arguments": arguments}).to_string()
            };
            calls.iter().map(json).collect()
        });
        format!("{}[{}]{}", self.start, list.join(", "), self.end)
    }
}

/// `name(a="x", n=3)`, if names allow it.
fn written(name: &str, arguments: &Value) -> Option<String> {
    let arguments = arguments.as_object()?;
    let is_python = name.split('.').all(is_identifier) && arguments.keys().all(|key| is_identifier(key));
    let argument = |(key, value): (&String, &Value)| format!("{key}={}", python_literal(value));
    is_python.then(|| format!("{name}({})", arguments.iter().map(argument).collect::<Vec<_>>().join(", ")))
}

/// Whether `name` can be written as a name in Python.
pub(crate) fn is_identifier(name: &str) -> bool {
    let begins = |c: char| c == '_' || c.is_alphabetic();
    let constants = ["True", "False", "None"];
    name.starts_with(begins)
        && name.chars().all(|c| begins(c) || c.is_numeric())
        && !constants.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marks() -> ToolMarks {
        ToolMarks { start: "<".into(), end: ">".into() }
    }

    #[test]
    fn calls_are_written_as_python_and_read_back_the_same() {
        let arguments = json!({"city": "Saint-Étienne \"x\"\n", "n": -3, "deep": {"a": [true, null, 1.5]}});
        let text = marks().write(&[("weather.get", &arguments), ("ping", &json!({}))]);
        assert_eq!(
            text,
            r#"<[weather.get(city="Saint-Étienne \"x\"\n", n=-3, deep={"a": [True, None, 1.5]}), ping()]>"#
        );
        let Block::Calls { calls, .. } = read_block(&text[1..], ">", &[]) else { panic!("{text}") };
        assert_eq!(calls[0].name, "weather.get");
        assert_eq!(serde_json::from_str::<Value>(&calls[0].arguments).unwrap(), arguments);
        assert_eq!(calls[1], ToolCall { name: "ping".into(), arguments: "{}".into() });
    }

    #[test]
    fn names_that_are_not_pythons_make_it_json() {
        let text = marks().write(&[("get-weather", &json!({"city": "x"}))]);
        assert_eq!(text, r#"<[{"name":"get-weather","arguments":{"city":"x"}}]>"#);
        let Block::Calls { calls, .. } = read_block(&text[1..], ">", &[]) else { panic!("{text}") };
        assert_eq!(calls[0].name, "get-weather");
    }
}
