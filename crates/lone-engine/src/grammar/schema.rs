//! Schemas as grammars are made of them: read once, and then in parts that mean the same wherever they stand.
//!
//! ```text
//! {"type": "object", "properties": {"next": {"$ref": "#"}}}
//!     ->  {"type": "object", "properties": {"next": {"$ref": "#/$defs/0"}}}
//!         0: {"type": "object", "properties": {"next": {"$ref": "#/$defs/0"}}}
//! ```

use serde_json::{Map, Value, json};

use super::limits::{MOST_DEPTH, Tally};
use super::one_of::Alternatives;
use super::reader::Reader;
use super::{GrammarError, SETTINGS, references, refuse};

/// A schema that has been read.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    root: Map<String, Value>,
    /// What references lead to, by number.
    definitions: Map<String, Value>,
    /// The dialect it says it is in.
    dialect: Option<Value>,
}

impl Schema {
    /// Reads `document`, which `tally` counts.
    pub(super) fn read(document: &Value, tally: &mut Tally) -> Result<Self, GrammarError> {
        if document.get(SETTINGS).is_some() {
            return Err(refuse(format_args!("`{SETTINGS}` is no keyword of schemas")));
        }
        let (root, definitions) = Reader::new(document, tally).read()?;
        if references::depth(&root, &definitions) > MOST_DEPTH {
            return Err(refuse(format_args!(
                "it nests, by itself and by references, more than {MOST_DEPTH} deep"
            )));
        }
        let mut alternatives = Alternatives::new(&definitions);
        let root = as_object(alternatives.rewrite(&root));
        let definitions =
            definitions.iter().map(|(number, schema)| (number.clone(), alternatives.rewrite(schema)));
        let definitions = definitions.collect();
        Ok(Schema { root, definitions, dialect: document.get("$schema").cloned() })
    }

    /// Its keywords.
    pub(super) fn keywords(&self) -> &Map<String, Value> {
        &self.root
    }

    /// All of it, to stand in a place of its own.
    pub(super) fn whole(&self) -> Map<String, Value> {
        let mut whole = self.root.clone();
        self.define(&mut whole, &mut Tally::default()).expect("it was counted when it was read");
        whole
    }

    /// Puts what is in it, at any depth, in a place of its own, with the definitions it needs, which `tally` counts.
    pub(super) fn define(
        &self,
        part: &mut Map<String, Value>,
        tally: &mut Tally,
    ) -> Result<(), GrammarError> {
        let value = Value::Object(part.clone());
        let mut needed = Map::new();
        for (number, schema) in references::needed_by(&value, &self.definitions) {
            tally.schemas(objects_in(schema))?;
            needed.insert(number.clone(), schema.clone());
        }
        if !needed.is_empty() {
            part.insert("$defs".into(), needed.into());
        }
        if let Some(dialect) = &self.dialect {
            part.insert("$schema".into(), dialect.clone());
        }
        Ok(())
    }
}

/// A schema that may be `true` or `false`, in keywords.
pub(super) fn as_object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(object) => object,
        Value::Bool(false) => Map::from_iter([("enum".to_owned(), json!([]))]),
        _ => Map::new(),
    }
}

/// How many objects there are in `value`: about as many as schemas.
fn objects_in(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(objects_in).sum(),
        Value::Object(object) => 1 + object.values().map(objects_in).sum::<usize>(),
        _ => 0,
    }
}
