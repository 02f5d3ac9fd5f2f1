//! The Jinja environment that transformers sets up for chat templates, in minijinja.

use jiff::ZonedDateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use minijinja_contrib::pycompat;

use super::{json, python};

/// What a template said by `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(String);

impl Raised {
    /// The template's words, if it is what made rendering fail.
    pub(super) fn find(error: &Error) -> Option<String> {
        let mut error: &dyn std::error::Error = error;
        loop {
            if let Some(Raised(message)) = error.downcast_ref() {
                return Some(message.clone());
            }
            error = error.source()?;
        }
    }
}

/// An environment without templates.
pub(super) fn new() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters do not clash"));
    environment.set_formatter(write_value);
    environment.set_unknown_method_callback(python_method);
    minijinja_contrib::add_to_environment(&mut environment);
    environment.add_filter("tojson", json::to_json);
    environment.add_filter("string", python::text);
    environment.add_test("sequence", is_sequence);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment
}

fn write_value(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&python::text(value)),
    };
    written.map_err(Error::from)
}

/// Jinja's `sequence`: whatever has a length and items, which in Python includes strings and mappings.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map)
}

/// Methods of Python's types: minijinja's, and those of strings that it lacks.
fn python_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let parts = |parts: [&str; 3]| Value::from(Tuple::from(parts.map(Value::from)));
    let argument = args.first().and_then(Value::as_str);
    match (value.as_str(), method, argument) {
        (Some(text), "removeprefix", Some(prefix)) => Ok(text.strip_prefix(prefix).unwrap_or(text).into()),
        (Some(text), "removesuffix", Some(suffix)) => Ok(text.strip_suffix(suffix).unwrap_or(text).into()),
        (Some(text), "rsplit", Some(separator)) if !separator.is_empty() => {
            rsplit(text, separator, args.get(1))
        }
        (Some(text), "partition", Some(separator)) => Ok(match text.split_once(separator) {
            Some((before, after)) => parts([before, separator, after]),
            None => parts([text, "", ""]),
        }),
        (Some(text), "rpartition", Some(separator)) => Ok(match text.rsplit_once(separator) {
            Some((before, after)) => parts([before, separator, after]),
            None => parts(["", "", text]),
        }),
        _ => pycompat::unknown_method_callback(state, value, method, args),
    }
}

/// `text.rsplit(separator, most)`.
fn rsplit(text: &str, separator: &str, most: Option<&Value>) -> Result<Value, Error> {
    let most = most.map(|most| i64::try_from(most.clone())).transpose()?;
    let parts =
        most.and_then(|most| usize::try_from(most).ok()).map_or(usize::MAX, |most| most.saturating_add(1));
    let mut parts: Vec<&str> = text.rsplitn(parts, separator).collect();
    parts.reverse();
    Ok(Value::from_iter(parts.into_iter().map(str::to_owned)))
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// The local time, now.
fn strftime_now(format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, &ZonedDateTime::now())
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {error}")))
}
