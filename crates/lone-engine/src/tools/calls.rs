//! A block of calls: what stands between the marks.

use super::literal::{Flaw, Literal, Reader};
use super::{Tool, ToolCall, is_identifier};

/// What text behind the opening mark turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    /// Calls and the closing mark, `bytes` in all.
    Calls {
        /// The calls, at least one.
        calls: Vec<ToolCall>,
        /// How much of the text they are.
        bytes: usize,
    },
    /// Perhaps the beginning of that.
    Incomplete,
    /// Not that, whatever follows.
    Malformed,
}

/// Reads the text behind an opening mark, up to the closing mark `end`.
pub(crate) fn read_block(text: &str, end: &str, tools: &[Tool]) -> Block {
    match calls_and_mark(text, end, tools) {
        Ok((calls, bytes)) => Block::Calls { calls, bytes },
        Err(Flaw::Incomplete) => Block::Incomplete,
        Err(Flaw::Malformed) => Block::Malformed,
    }
}

fn calls_and_mark(text: &str, end: &str, tools: &[Tool]) -> Result<(Vec<ToolCall>, usize), Flaw> {
    let mut reader = Reader::new(text);
    let calls = if reader.take('[')? {
        reader.items(']', |reader| call(reader, tools))?
    } else {
        vec![call(&mut reader, tools)?]
    };
    reader.skip_space();
    let at = reader.at();
    if text[at..].starts_with(end) && !calls.is_empty() {
        return Ok((calls, at + end.len()));
    }
    Err(if end.starts_with(&text[at..]) { Flaw::Incomplete } else { Flaw::Malformed })
}

fn call(reader: &mut Reader<'_>, tools: &[Tool]) -> Result<ToolCall, Flaw> {
    reader.skip_space();
    if reader.peek()? == '{' {
        return json_call(reader.literal(0)?).ok_or(Flaw::Malformed);
    }
    let name = reader.name()?;
    if !name.split('.').all(is_identifier) {
        return Err(Flaw::Malformed);
    }
    reader.expect('(')?;
    let arguments = reader.items(')', argument)?;
    let parameters = tools.iter().find(|tool| tool.name == name).map_or(&[][..], |tool| &tool.parameters);
    let arguments = named(arguments, parameters).ok_or(Flaw::Malformed)?;
    Ok(tool_call(name.to_owned(), arguments))
}

/// `name=value`, or a value alone.
fn argument(reader: &mut Reader<'_>) -> Result<(Option<String>, Literal), Flaw> {
    let mut ahead = reader.clone();
    let name = ahead.name()?;
    if is_identifier(name) && ahead.take('=')? {
        *reader = ahead;
        return Ok((Some(name.to_owned()), reader.literal(0)?));
    }
    Ok((None, reader.literal(0)?))
}

/// Gives arguments without a name those of the parameters, in order; `None` where that cannot be, or a name comes
/// twice.
fn named(arguments: Vec<(Option<String>, Literal)>, parameters: &[String]) -> Option<Vec<(String, Literal)>> {
    let mut named: Vec<(String, Literal)> = Vec::new();
    let mut seen_names = false;
    for (position, (name, value)) in arguments.into_iter().enumerate() {
        seen_names |= name.is_some();
        let name = match name {
            Some(name) => name,
            None if seen_names => return None,
            None => parameters.get(position)?.clone(),
        };
        if named.iter().any(|(other, _)| *other == name) {
            return None;
        }
        named.push((name, value));
    }
    Some(named)
}

/// `{"name": …, "arguments": {…}}`; `arguments` may be JSON in a string, or be called `parameters`.
fn json_call(literal: Literal) -> Option<ToolCall> {
    let Literal::Dict(mut entries) = literal else { return None };
    let mut take = |wanted: &str| {
        let index = entries.iter().position(|(key, _)| key == wanted)?;
        Some(entries.swap_remove(index).1)
    };
    let Literal::Text(name) = take("name")? else { return None };
    match take("arguments").or_else(|| take("parameters")) {
        Some(Literal::Dict(arguments)) => Some(tool_call(name, arguments)),
        Some(Literal::Text(json)) => {
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&json).ok()?;
            Some(ToolCall { name, arguments: serde_json::Value::from(object).to_string() })
        }
        Some(Literal::None) | None => Some(tool_call(name, Vec::new())),
        Some(_) => None,
    }
}

fn tool_call(name: String, arguments: Vec<(String, Literal)>) -> ToolCall {
    let mut json = String::new();
    Literal::Dict(arguments).write_json(&mut json);
    ToolCall { name, arguments: json }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const END: &str = "<|end|>";

    fn read(text: &str) -> Block {
        let tools = [Tool { name: "f".into(), parameters: vec!["a".into(), "b".into()] }];
        read_block(text, END, &tools)
    }

    /// The calls in `text`, the closing mark being added, as `name{arguments}`.
    fn calls(text: &str) -> Option<String> {
        let text = format!("{text}{END}");
        match read(&text) {
            Block::Calls { calls, bytes } => {
                assert_eq!(bytes, text.len());
                Some(calls.iter().map(|call| format!("{}{} ", call.name, call.arguments)).collect())
            }
            Block::Incomplete | Block::Malformed => None,
        }
    }

    #[test]
    fn python_lists_of_calls_are_read() {
        let table = [
            ("[f()]", "f{} "),
            (r#"[f(a="x", n=3)]"#, r#"f{"a":"x","n":3} "#),
            ("[ f ( a = 'x' , ) , g.h(b=[1, {'c': None}]) ]\n", r#"f{"a":"x"} g.h{"b":[1,{"c":null}]} "#),
            ("f(a=True)", r#"f{"a":true} "#),
            (r#"[f("x", b=2)]"#, r#"f{"a":"x","b":2} "#),
            (r#"[f(a="]<|end|>)")]"#, r#"f{"a":"]<|end|>)"} "#),
        ];
        for (text, expected) in table {
            assert_eq!(calls(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn json_lists_of_calls_are_read() {
        let table = [
            (r#"[{"name": "f", "arguments": {"a": true}}]"#, r#"f{"a":true} "#),
            (r#"{"arguments": {}, "name": "get-it"}"#, "get-it{} "),
            (r#"[{"name": "f", "arguments": "{\"a\": [1]}"}, {"name": "g"}]"#, r#"f{"a":[1]} g{} "#),
            (r#"[{"name": "f", "parameters": {"a": null}}]"#, r#"f{"a":null} "#),
        ];
        for (text, expected) in table {
            assert_eq!(calls(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_list_of_calls_is_malformed() {
        let malformed = [
            "[]",
            "[f]",
            "[f(]",
            "[f(a=)]",
            "[f(a=1, a=2)]",
            "[f(a=1, 2)]",
            "[f(1, 2, 3)]",
            "[g(1)]",
            "[1f()]",
            "[f() g()]",
            "[f()] and more",
            "[f(a=b)]",
            "[True()]",
            r#"[{"arguments": {}}]"#,
            r#"[{"name": 1}]"#,
            r#"[{"name": "f", "arguments": [1]}]"#,
            r#"[{"name": "f", "arguments": "x"}]"#,
            "",
        ];
        for text in malformed {
            assert_eq!(calls(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_are_as_deep_and_as_large_as_they_come_back_and_no_deeper() {
        let nested = |depth: usize| format!("[f(a={}{})]", "[".repeat(depth), "]".repeat(depth));
        let read = calls(&nested(126)).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&read[1..]).is_ok());
        assert_eq!(calls(&nested(127)), None);
        let digits = "7".repeat(400);
        assert_eq!(calls(&format!("[f(a={digits})]")), Some(format!("f{{\"a\":{digits}}} ")));
    }

    #[test]
    fn a_block_is_incomplete_until_its_last_character() {
        let whole = format!("[f(a=\"x{END}\", b=[1.5, None])] {END}");
        for end in whole.char_indices().map(|(at, _)| at) {
            assert_eq!(read(&whole[..end]), Block::Incomplete, "{}", &whole[..end]);
        }
        assert!(matches!(read(&format!("{whole} more")), Block::Calls { bytes, .. } if bytes == whole.len()));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_calls_are_always_json(text in r#"[\[\](){}'"\\fnu0-9a,=:. <|end>-]{0,60}"#) {
            if let Block::Calls { calls, .. } = read(&text) {
                for call in calls {
                    prop_assert!(serde_json::from_str::<std::collections::BTreeMap<String, serde::de::IgnoredAny>>(&call.arguments).is_ok());
                }
            }
        }
    }
}
