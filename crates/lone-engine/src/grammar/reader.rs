//! Reads a schema: checks it, counts it, and makes its references ones to numbered definitions.
//!
//! What no reference leads to is left out of the definitions, and annotations are left out altogether. Patterns are
//! translated, and numbers held to what llguidance can count to.

use std::collections::HashMap;

use serde_json::{Map, Number, Value, json};

use super::limits::{MOST_COPIED, Tally};
use super::numbers::{self, Multiples, Side};
use super::references::{DEFINITION, pointer};
use super::{GrammarError, pattern, refuse};

/// Keywords that say nothing about which values fit.
const ANNOTATIONS: [&str; 13] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];
/// Keywords that put one schema upon what stands beside it.
const JOINING: [&str; 4] = ["allOf", "anyOf", "oneOf", "$ref"];
/// Keywords that put values upon it.
const VALUES: [&str; 2] = ["const", "enum"];
/// Nesting of one document, as readers of JSON have it.
const MOST_NESTING: usize = 128;

/// What is known of a document while it is read.
pub(super) struct Reader<'a> {
    document: &'a Value,
    tally: &'a mut Tally,
    /// The numbers of definitions, by where they stand.
    numbers: HashMap<String, usize>,
    /// Definitions that are still to be read.
    pending: Vec<(usize, &'a Value)>,
    /// Those that have been, by their numbers.
    definitions: Map<String, Value>,
    /// How many there are of both.
    count: usize,
    /// The size of all parts that have become definitions.
    shared: usize,
    multiples: Multiples,
    /// Whether a schema within has a name of its own, which references in it would begin at.
    has_names: bool,
    /// Whether several schemas may concern the same value.
    joins: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Value, tally: &'a mut Tally) -> Self {
        Reader {
            document,
            tally,
            numbers: HashMap::new(),
            pending: Vec::new(),
            definitions: Map::new(),
            count: 0,
            shared: 0,
            multiples: Multiples::default(),
            has_names: false,
            joins: false,
        }
    }

    /// The schema, and its definitions by their numbers.
    pub(super) fn read(mut self) -> Result<(Value, Map<String, Value>), GrammarError> {
        let root = self.schema(self.document, 0)?;
        while let Some((number, schema)) = self.pending.pop() {
            let schema = self.schema(schema, 1)?;
            self.definitions.insert(number.to_string(), schema);
        }
        if self.has_names && !self.numbers.is_empty() {
            return Err(refuse("it has references and, not only at its top, `$id`, which is not supported"));
        }
        if self.joins {
            self.tally.joined_patterns()?;
            if !self.multiples.go_together() {
                return Err(refuse("its `multipleOf` come to numbers that are too large together"));
            }
        }
        Ok((root, self.definitions))
    }

    fn schema(&mut self, schema: &'a Value, nesting: usize) -> Result<Value, GrammarError> {
        self.tally.schemas(1)?;
        if nesting > MOST_NESTING {
            return Err(refuse(format_args!("it is nested more than {MOST_NESTING} deep")));
        }
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(object) if object.get("const").is_some_and(|value| !is_writable(value)) => {
                Ok(false.into())
            }
            Value::Object(object) => Ok(self.object(object, nesting)?.into()),
            _ => Err(refuse("a schema is neither an object nor `true` nor `false`")),
        }
    }

    /// A schema within another one. A large one becomes a definition, so that llguidance copies its name and not all of it
    /// wherever it puts the other one upon something.
    fn part(&mut self, schema: &'a Value, nesting: usize) -> Result<Value, GrammarError> {
        let before = self.tally.size() - self.shared;
        let read = self.schema(schema, nesting)?;
        let size = self.tally.size() - self.shared - before;
        if size <= MOST_COPIED {
            return Ok(read);
        }
        self.shared += size;
        let number = self.next_number();
        self.definitions.insert(number.to_string(), read);
        Ok(json!({"$ref": format!("{DEFINITION}{number}")}))
    }

    fn object(
        &mut self,
        object: &'a Map<String, Value>,
        nesting: usize,
    ) -> Result<Map<String, Value>, GrammarError> {
        self.has_names |= nesting > 0 && object.contains_key("$id");
        let constraining = object.keys().filter(|key| !ANNOTATIONS.contains(&key.as_str()));
        let has_others = constraining.count() > 1;
        self.joins |= object.keys().any(|key| has_others && JOINING.contains(&key.as_str()))
            || object.contains_key("allOf")
            || object.contains_key("patternProperties");
        check_least(object)?;
        let mut read = Map::new();
        for (key, value) in side_by_side(object) {
            if let Some(value) = self.keyword(key, value, object, nesting + 1)? {
                read.insert(key.clone(), value);
            }
        }
        Ok(read)
    }

    /// What to put for the keyword, if anything. What is not as it must be is left to llguidance, which says so.
    fn keyword(
        &mut self,
        key: &str,
        value: &'a Value,
        object: &Map<String, Value>,
        nesting: usize,
    ) -> Result<Option<Value>, GrammarError> {
        // How the oldest dialect has it.
        let is_exclusive = |word: &str| object.get(word).is_some_and(|value| *value == true);
        let read = match (key, value) {
            ("$ref", Value::String(reference)) => self.reference(reference)?,
            ("pattern", Value::String(pattern)) => self.pattern(pattern)?.into(),
            ("minimum", Value::Number(number)) => {
                bound(key, number, Side::Above, is_exclusive("exclusiveMinimum"))?
            }
            ("exclusiveMinimum", Value::Number(number)) => bound(key, number, Side::Above, true)?,
            ("maximum", Value::Number(number)) => {
                bound(key, number, Side::Below, is_exclusive("exclusiveMaximum"))?
            }
            ("exclusiveMaximum", Value::Number(number)) => bound(key, number, Side::Below, true)?,
            ("multipleOf", Value::Number(number)) => {
                self.multiples
                    .add(number)
                    .map_err(|problem| refuse(format_args!("`multipleOf` is {problem}")))?;
                value.clone()
            }
            ("const", value) => {
                self.values(value)?;
                value.clone()
            }
            ("enum", Value::Array(values)) => {
                self.values(value)?;
                values.iter().filter(|value| is_writable(value)).cloned().collect()
            }
            ("required", Value::Array(names)) => {
                names.iter().try_for_each(|name| self.values(name))?;
                value.clone()
            }
            ("properties" | "patternProperties", Value::Object(named)) => self.named(key, named, nesting)?,
            ("anyOf" | "oneOf" | "allOf", Value::Array(list)) => {
                list.iter().map(|schema| self.schema(schema, nesting)).collect::<Result<_, _>>()?
            }
            ("items" | "additionalItems" | "prefixItems", Value::Array(list)) => {
                list.iter().map(|schema| self.part(schema, nesting)).collect::<Result<_, _>>()?
            }
            ("items" | "additionalItems" | "additionalProperties", schema) => self.part(schema, nesting)?,
            // The name of a schema in the oldest dialect.
            ("id", Value::String(_)) => {
                self.has_names |= nesting > 1 && self.is_draft_4();
                return Ok(None);
            }
            (_, value) => value.clone(),
        };
        Ok(Some(read))
    }

    fn named(
        &mut self,
        key: &str,
        named: &'a Map<String, Value>,
        nesting: usize,
    ) -> Result<Value, GrammarError> {
        let mut read = Map::new();
        for (name, schema) in named {
            self.tally.value_bytes(name.len())?;
            let name = if key == "properties" { name.clone() } else { self.pattern(name)? };
            if read.insert(name, self.part(schema, nesting)?).is_some() {
                return Err(refuse("two of `patternProperties` are the same pattern"));
            }
        }
        Ok(read.into())
    }

    fn reference(&mut self, reference: &str) -> Result<Value, GrammarError> {
        let pointer = pointer(reference, self.document).ok_or_else(|| {
            refuse(format_args!(
                "`$ref` is {reference:?}, and must lead within the schema: `#`, or `#/` and a path"
            ))
        })?;
        let number = match self.numbers.get(&pointer) {
            Some(&number) => number,
            None => {
                let target = self.document.pointer(&pointer);
                let target = target
                    .ok_or_else(|| refuse(format_args!("`$ref` is {reference:?}, which is not there")))?;
                let number = self.next_number();
                self.pending.push((number, target));
                self.numbers.insert(pointer, number);
                number
            }
        };
        Ok(format!("{DEFINITION}{number}").into())
    }

    fn next_number(&mut self) -> usize {
        self.count += 1;
        self.count - 1
    }

    fn pattern(&mut self, pattern: &str) -> Result<String, GrammarError> {
        self.tally.pattern(pattern.len())?;
        pattern::to_rust(pattern).map_err(|problem| refuse(format_args!("the pattern {pattern:?} {problem}")))
    }

    /// Checks and counts all that is in `value`.
    fn values(&mut self, value: &Value) -> Result<(), GrammarError> {
        self.tally.values(1)?;
        match value {
            Value::Number(number) => numbers::check_constant(number)
                .map_err(|problem| refuse(format_args!("a constant is {problem}"))),
            Value::String(text) => self.tally.value_bytes(text.len()),
            Value::Array(list) => list.iter().try_for_each(|value| self.values(value)),
            Value::Object(object) => object.iter().try_for_each(|(name, value)| {
                self.tally.value_bytes(name.len())?;
                self.values(value)
            }),
            _ => Ok(()),
        }
    }

    fn is_draft_4(&self) -> bool {
        let dialect = self.document.get("$schema").and_then(Value::as_str);
        dialect.is_some_and(|dialect| dialect.contains("draft-04"))
    }
}

/// The keywords of `object` that say something, all that neither join schemas nor are values side by side: llguidance
/// reads by itself what stands between two of the others, and forgets `items` over `additionalItems`.
fn side_by_side(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let said = object.iter().filter(|(key, _)| !ANNOTATIONS.contains(&key.as_str()));
    let is_put_upon =
        |(key, _): &(&String, &Value)| JOINING.contains(&key.as_str()) || VALUES.contains(&key.as_str());
    let before = said.clone().take_while(is_put_upon).count();
    let (put_upon, plain): (Vec<_>, Vec<_>) = said.partition(is_put_upon);
    [&put_upon[..before], &plain[..], &put_upon[before..]].concat()
}

fn bound(key: &str, number: &Number, side: Side, is_exclusive: bool) -> Result<Value, GrammarError> {
    let bound = numbers::bound(number, side, is_exclusive);
    bound.map(Value::Number).map_err(|problem| refuse(format_args!("`{key}` is {problem}")))
}

/// Whether answers can have `value`: its strings have no control characters but those with a letter of their own.
fn is_writable(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let has_letter = |c| matches!(c, '\u{8}' | '\u{c}' | '\n' | '\r' | '\t');
            text.chars().all(|c| !c.is_ascii_control() || has_letter(c))
        }
        Value::Array(list) => list.iter().all(is_writable),
        Value::Object(object) => object.values().all(is_writable),
        _ => true,
    }
}

/// Refuses to count properties that may have the same name: only one beyond those required is another for certain.
fn check_least(object: &Map<String, Value>) -> Result<(), GrammarError> {
    let required = object.get("required").and_then(Value::as_array).map_or(0, |required| {
        required.iter().filter_map(Value::as_str).collect::<std::collections::HashSet<_>>().len()
    });
    match object.get("minProperties").and_then(Value::as_u64) {
        Some(least) if least > required as u64 + 1 => {
            let most = "`minProperties` is supported up to one more than there are names in `required`";
            Err(refuse(format_args!("{most}, and is {least} with {required}")))
        }
        _ => Ok(()),
    }
}
