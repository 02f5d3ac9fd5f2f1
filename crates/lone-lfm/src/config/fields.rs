//! Typed reading of one JSON object, under every spelling a field has had.
//!
//! A field is asked for by a list of names, newest first. The newest one present wins; an older one with another value
//! becomes a [`Warning`]. `null` counts as absent.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ConfigError;
use crate::Warning;

pub(super) const CONFIG: &str = "config.json";

/// One object of a configuration file.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) file: &'static str,
    /// Dotted path of the object inside the file, empty for the root.
    pub(super) path: &'a str,
    pub(super) object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Full name of a field, as errors print it.
    pub(super) fn full_name(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The field's value; `null` counts as absent.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// True where the field is present and `null`.
    pub(super) fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// The newest spelling present, and a warning for every older one that says something else.
    pub(super) fn newest(
        &self,
        spellings: &[&'static str],
        warnings: &mut Vec<Warning>,
    ) -> Option<(&'static str, &'a Value)> {
        let mut present = spellings.iter().filter_map(|&name| Some((name, self.value(name)?)));
        let (new, new_value) = present.next()?;
        for (old, old_value) in present.filter(|(_, value)| !same_value(new_value, value)) {
            warnings.push(Warning::SpellingsDiffer {
                new: self.full_name(new),
                new_value: new_value.to_string(),
                old: self.full_name(old),
                old_value: old_value.to_string(),
            });
        }
        Some((new, new_value))
    }

    /// A whole number within `range`, or `None` where no spelling is present.
    pub(super) fn size(
        &self,
        spellings: &[&'static str],
        range: RangeInclusive<usize>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<usize>, ConfigError> {
        let Some((name, value)) = self.newest(spellings, warnings) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.invalid(name, expected, value))
            }
        }
    }

    /// Like [`Fields::size`], for a field without a default.
    pub(super) fn required_size(
        &self,
        spellings: &[&'static str],
        range: RangeInclusive<usize>,
        warnings: &mut Vec<Warning>,
    ) -> Result<usize, ConfigError> {
        self.size(spellings, range, warnings)?.ok_or_else(|| self.missing(spellings))
    }

    /// A finite number within `range`, or `None` where no spelling is present.
    pub(super) fn number(
        &self,
        spellings: &[&'static str],
        range: RangeInclusive<f64>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<f64>, ConfigError> {
        let Some((name, value)) = self.newest(spellings, warnings) else { return Ok(None) };
        match value.as_f64().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                Err(self.invalid(name, expected, value))
            }
        }
    }

    /// A boolean, or `None` where no spelling is present.
    pub(super) fn flag(
        &self,
        spellings: &[&'static str],
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<bool>, ConfigError> {
        let Some((name, value)) = self.newest(spellings, warnings) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.invalid(name, "true or false", value))
    }

    /// A token id, or `None` where the field is absent.
    pub(super) fn token(&self, name: &str) -> Result<Option<u32>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        token_id(value).map(Some).ok_or_else(|| self.invalid(name, "a token id", value))
    }

    /// One token id or a list of them, or `None` where the field is absent.
    pub(super) fn tokens(&self, name: &str) -> Result<Option<Vec<u32>>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let ids = match value {
            Value::Array(items) => items.iter().map(token_id).collect(),
            one => token_id(one).map(|id| vec![id]),
        };
        ids.map(Some).ok_or_else(|| self.invalid(name, "a token id or a list of token ids", value))
    }

    pub(super) fn invalid(
        &self,
        name: &str,
        expected: impl Into<String>,
        found: &impl Display,
    ) -> ConfigError {
        ConfigError::Invalid {
            file: self.file,
            field: self.full_name(name),
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    pub(super) fn missing(&self, spellings: &[&str]) -> ConfigError {
        let names: Vec<_> = spellings.iter().map(|name| self.full_name(name)).collect();
        ConfigError::Missing { field: names.join("` or `") }
    }
}

fn token_id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|id| u32::try_from(id).ok())
}

/// Equality that does not tell `1` from `1.0`.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
