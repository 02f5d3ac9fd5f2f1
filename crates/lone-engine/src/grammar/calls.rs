//! Calls of tools as a grammar in llguidance's dialect of Lark.
//!
//! A tool whose arguments are plain properties is called as the models write calls, `f(a=1, b="x")`, each argument JSON
//! of its property's schema. Any other is called as JSON, `{"name": "f", "arguments": {…}}`, of the whole schema.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{CallSchema, SETTINGS};
use crate::ToolMarks;
use crate::tools::is_identifier;

/// Keywords of an object's schema that say nothing about several properties at once.
const PLAIN: [&str; 9] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "title",
    "description",
    "$defs",
    "definitions",
    "$schema",
];

/// The grammar of calls of `tools` between `marks`: one, or several if `many`; or of JSON, if there is a schema for it.
pub(super) fn lark(
    marks: &ToolMarks,
    tools: &[CallSchema<'_>],
    many: bool,
    or_json: Option<&Value>,
) -> String {
    let ToolMarks { start, end } = marks;
    let more = if many { r#"(", " call)*"# } else { "" };
    let names: Vec<String> = (0..tools.len()).map(|tool| format!("tool_{tool}")).collect();
    let json = or_json.map(|schema| format!(" | json\njson: %json {schema}")).unwrap_or_default();
    let mut lark = format!("start: calls{json}\ncalls: {start} \"[\" call {more} \"]\" {end}\n");
    line(&mut lark, format_args!("call: {}", names.join(" | ")));
    for (tool, name) in tools.iter().zip(names) {
        match Plain::of(tool) {
            Some(plain) => plain.write(&name, tool.name, &mut lark),
            None => {
                let schema = tool.parameters.cloned().unwrap_or_default();
                let call = json!({
                    "type": "object",
                    "properties": {"name": {"const": tool.name}, "arguments": schema},
                    "required": ["name", "arguments"],
                    "additionalProperties": false,
                });
                line(&mut lark, format_args!("{name}: %json {}", spaced(call, &schema_definitions(tool))));
            }
        }
    }
    lark
}

/// Arguments that do not depend on each other.
struct Plain {
    /// In the order they are given.
    arguments: Vec<Argument>,
}

struct Argument {
    name: String,
    schema: Value,
    is_required: bool,
}

impl Plain {
    fn of(tool: &CallSchema<'_>) -> Option<Self> {
        let nothing = Map::new();
        let schema = tool.parameters.unwrap_or(&nothing);
        let properties = match schema.get("properties") {
            None => &nothing,
            Some(properties) => properties.as_object()?,
        };
        let required: Vec<&str> = match schema.get("required") {
            None => Vec::new(),
            Some(required) => required.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
        };
        let is_plain = schema.keys().all(|key| PLAIN.contains(&key.as_str()))
            && schema.get("type").is_none_or(|kind| kind == "object")
            && tool.name.split('.').all(is_identifier)
            && properties.keys().all(|name| is_identifier(name) && name.is_ascii())
            && required.iter().all(|name| properties.contains_key(*name));
        let definitions = schema_definitions(tool);
        let argument = |(name, schema): (&String, &Value)| Argument {
            name: name.clone(),
            schema: spaced(schema.clone(), &definitions),
            is_required: required.contains(&name.as_str()),
        };
        is_plain.then(|| Plain { arguments: properties.iter().map(argument).collect() })
    }

    /// Writes the rules of one tool. Rule `first_i` has the arguments from number i on when none was given before,
    /// rule `rest_i` when one was and a comma is due.
    fn write(&self, rule: &str, tool: &str, lark: &mut String) {
        line(lark, format_args!("{rule}: \"{tool}(\" {rule}_first_0 \")\""));
        for (i, Argument { name, schema, is_required }) in self.arguments.iter().enumerate() {
            let next = i + 1;
            let skip = if *is_required { String::new() } else { format!(" | {rule}_first_{next}") };
            let optional = if *is_required { "" } else { "?" };
            line(lark, format_args!("{rule}_argument_{i}: \"{name}=\" %json {schema}"));
            line(lark, format_args!("{rule}_first_{i}: {rule}_argument_{i} {rule}_rest_{next}{skip}"));
            line(
                lark,
                format_args!("{rule}_rest_{i}: (\", \" {rule}_argument_{i}){optional} {rule}_rest_{next}"),
            );
        }
        let last = self.arguments.len();
        line(lark, format_args!("{rule}_first_{last}: \"\"\n{rule}_rest_{last}: \"\""));
    }
}

fn line(lark: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(lark, "{line}").expect("writing to a string does not fail");
}

/// What references in a tool's schema may lead to.
fn schema_definitions(tool: &CallSchema<'_>) -> Map<String, Value> {
    let schema = tool.parameters.into_iter().flatten();
    let definitions = schema.filter(|(key, _)| *key == "$defs" || *key == "definitions");
    definitions.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// `schema` on its own, and its JSON written as models write it, on one line.
fn spaced(schema: Value, definitions: &Map<String, Value>) -> Value {
    let mut object = match schema {
        Value::Object(object) => object,
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    };
    for (key, value) in definitions {
        object.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let spacing = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    object.insert(SETTINGS.into(), spacing);
    Value::Object(object)
}
