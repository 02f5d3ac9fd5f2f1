//! Calls of tools as a grammar in llguidance's dialect of Lark.
//!
//! A tool whose arguments are plain properties is called as the models write calls, `f(a=1, b="x")`, each argument JSON
//! of its property's schema. Any other is called as JSON, `{"name": "f", "arguments": {…}}`, of the whole schema.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::limits::Tally;
use super::schema::{Schema, as_object};
use super::{GrammarError, SETTINGS};
use crate::ToolMarks;
use crate::tools::is_identifier;

/// Keywords of an object's schema that say nothing about several properties at once.
const PLAIN: [&str; 4] = ["type", "properties", "required", "additionalProperties"];

/// A tool whose schema has been read.
pub(super) struct ReadTool<'a> {
    pub(super) name: &'a str,
    pub(super) parameters: Schema,
}

impl<'a> ReadTool<'a> {
    pub(super) fn read(name: &'a str, parameters: &Value, tally: &mut Tally) -> Result<Self, GrammarError> {
        Ok(ReadTool { name, parameters: Schema::read(parameters, tally)? })
    }
}

/// The grammar of calls of `tools` between `marks`: one, or several if `many`; or of JSON, if there is a schema for it.
///
/// # Errors
/// If the parts of the schemas come to more than `tally` allows.
pub(super) fn lark(
    marks: &ToolMarks,
    tools: &[ReadTool<'_>],
    many: bool,
    or_json: Option<&Value>,
    tally: &mut Tally,
) -> Result<String, GrammarError> {
    let ToolMarks { start, end } = marks;
    let more = if many { r#"(", " call)*"# } else { "" };
    let names: Vec<String> = (0..tools.len()).map(|tool| format!("tool_{tool}")).collect();
    let json = or_json.map(|schema| format!(" | json\njson: %json {schema}")).unwrap_or_default();
    let mut lark = format!("start: calls{json}\ncalls: {start} \"[\" call {more} \"]\" {end}\n");
    line(&mut lark, format_args!("call: {}", names.join(" | ")));
    for (tool, name) in tools.iter().zip(names) {
        match Plain::of(tool, tally)? {
            Some(plain) => plain.write(&name, tool.name, &mut lark),
            None => {
                // Whatever else fits the schema is not what a call has.
                let mut arguments = Map::from_iter([("type".to_owned(), json!("object"))]);
                arguments.extend(tool.parameters.keywords().clone());
                let call = json!({
                    "type": "object",
                    "properties": {"name": {"const": tool.name}, "arguments": arguments},
                    "required": ["name", "arguments"],
                    "additionalProperties": false,
                });
                let schema = spaced(call, &tool.parameters, tally)?;
                line(&mut lark, format_args!("{name}: %json {schema}"));
            }
        }
    }
    Ok(lark)
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
    fn of(tool: &ReadTool<'_>, tally: &mut Tally) -> Result<Option<Self>, GrammarError> {
        let schema = tool.parameters.keywords();
        let (nothing, none) = (Map::new(), Vec::new());
        let properties = schema.get("properties").map_or(Some(&nothing), Value::as_object);
        let required = schema.get("required").map_or(Some(&none), Value::as_array);
        let (Some(properties), Some(required)) = (properties, required) else { return Ok(None) };
        let is_required = |name: &str| required.iter().any(|required| required == name);
        let is_plain = schema.keys().all(|key| PLAIN.contains(&key.as_str()))
            && schema.get("type").is_none_or(|kind| kind == "object")
            && tool.name.split('.').all(is_identifier)
            && properties.keys().all(|name| is_identifier(name) && name.is_ascii())
            && required.iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
        if !is_plain {
            return Ok(None);
        }
        let given = properties.iter().filter(|(name, schema)| is_required(name) || **schema != false);
        let argument = |(name, schema): (&String, &Value)| {
            let schema = spaced(schema.clone(), &tool.parameters, tally)?;
            Ok(Argument { name: name.clone(), schema, is_required: is_required(name) })
        };
        Ok(Some(Plain { arguments: given.map(argument).collect::<Result<_, _>>()? }))
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

/// `schema`, which is part of `whole`, on its own, and its JSON written as models write it, on one line.
fn spaced(schema: Value, whole: &Schema, tally: &mut Tally) -> Result<Value, GrammarError> {
    let mut schema = as_object(schema);
    whole.define(&mut schema, tally)?;
    schema.insert(SETTINGS.into(), writing(", ", ": "));
    Ok(schema.into())
}

/// How JSON is to be written. A control character without a letter of its own has no escape: with `\u` a name could be
/// written in two ways, and be taken for another one.
pub(super) fn writing(between_items: &str, after_key: &str) -> Value {
    json!({
        "whitespace_flexible": false,
        "item_separator": between_items,
        "key_separator": after_key,
        "json_allowed_escapes": r#"nrbtf\""#,
    })
}
