//! The `tojson` filter as transformers defines it: Python's `json.dumps`, not Jinja's HTML-safe variant.

use std::fmt::Write;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::python;

/// Deeper values are refused; a template can build them in a loop.
pub(super) const MAX_DEPTH: usize = 200;

/// `value|tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn to_json(value: &Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    const NAMES: [&str; 4] = ["ensure_ascii", "indent", "separators", "sort_keys"];
    if positional.len() > NAMES.len() {
        return Err(refusal(format!("tojson takes {} arguments, found {}", NAMES.len(), positional.len())));
    }
    let mut arguments = NAMES.map(|_| None);
    for (at, name) in NAMES.iter().enumerate() {
        let argument = match positional.get(at) {
            Some(value) => Some(value.clone()),
            None => named.get::<Option<Value>>(name)?,
        };
        arguments[at] = argument.filter(|value| !value.is_none() && !value.is_undefined());
    }
    named.assert_all_used()?;
    let [ensure_ascii, indent, separators, sort_keys] = arguments;
    let indent = indent.map(|indent| indent_text(&indent)).transpose()?;
    let between_items = if indent.is_some() { "," } else { ", " };
    let mut writer = Writer {
        ensure_ascii: ensure_ascii.is_some_and(|flag| flag.is_true()),
        sort_keys: sort_keys.is_some_and(|flag| flag.is_true()),
        indent,
        separators: match separators {
            Some(pair) => separator_pair(&pair)?,
            None => (between_items.to_owned(), ": ".to_owned()),
        },
        out: String::new(),
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

/// A number of spaces, or the text itself.
fn indent_text(indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    let spaces = i64::try_from(indent.clone())?.max(0);
    match usize::try_from(spaces) {
        Ok(spaces) if spaces <= 1024 => Ok(" ".repeat(spaces)),
        _ => Err(refusal(format!("tojson cannot indent by {spaces} spaces"))),
    }
}

fn separator_pair(pair: &Value) -> Result<(String, String), Error> {
    let parts: Vec<String> = pair.try_iter()?.map(|part| part.to_string()).collect();
    match <[String; 2]>::try_from(parts) {
        Ok([item, key]) => Ok((item, key)),
        Err(parts) => Err(refusal(format!("tojson takes two separators, found {}", parts.len()))),
    }
}

fn refusal(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

struct Writer {
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    /// Between items, and between key and value.
    separators: (String, String),
    out: String,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(refusal(format!("tojson takes values nested at most {MAX_DEPTH} deep")));
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.object(value, depth)?,
            other => return Err(refusal(format!("a value of type {other} is not JSON serializable"))),
        }
        Ok(())
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut items = 0;
        self.out.push('[');
        for item in value.try_iter()? {
            self.separate(items, depth + 1);
            self.value(&item, depth + 1)?;
            items += 1;
        }
        self.close(items, depth, ']');
        Ok(())
    }

    fn object(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut fields = Vec::new();
        for key in value.try_iter()? {
            fields.push((key_text(&key)?, value.get_item(&key)?));
        }
        if self.sort_keys {
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        self.out.push('{');
        for (items, (key, value)) in fields.iter().enumerate() {
            self.separate(items, depth + 1);
            self.string(key);
            self.out.push_str(&self.separators.1);
            self.value(value, depth + 1)?;
        }
        self.close(fields.len(), depth, '}');
        Ok(())
    }

    /// What stands in front of item `items` of a container whose items are at `depth`.
    fn separate(&mut self, items: usize, depth: usize) {
        if items > 0 {
            self.out.push_str(&self.separators.0);
        }
        self.new_line(depth);
    }

    fn close(&mut self, items: usize, depth: usize, bracket: char) {
        if items > 0 {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str(indent));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\0'..='\u{1f}' => self.escape(letter),
                '\u{7f}'.. if self.ensure_ascii => self.escape(letter),
                _ => self.out.push(letter),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, letter: char) {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}

/// Keys that are not strings are spelled as JSON values.
fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => Ok(number(key)),
        other => Err(refusal(format!("keys must be strings or numbers, not {other}"))),
    }
}

fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() => match float {
            _ if float.is_nan() => "NaN".to_owned(),
            f64::INFINITY => "Infinity".to_owned(),
            f64::NEG_INFINITY => "-Infinity".to_owned(),
            _ => python::float(float),
        },
        _ => value.to_string(),
    }
}
