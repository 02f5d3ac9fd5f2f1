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
        let needed = self.needed_by(&whole);
        self.put(needed, &mut whole);
        whole
    }

    /// Puts what is in it, at any depth, in a place of its own, with the definitions it needs, which `tally` counts.
    pub(super) fn define(
        &self,
        part: &mut Map<String, Value>,
        tally: &mut Tally,
    ) -> Result<(), GrammarError> {
        let needed = self.needed_by(part);
        for schema in needed.values() {
            tally.schemas(objects_in(schema))?;
            tally.copied_bytes(schema.to_string().len())?;
        }
        self.put(needed, part);
        Ok(())
    }

    /// The definitions that `part` needs, by their numbers.
    fn needed_by(&self, part: &Map<String, Value>) -> Map<String, Value> {
        let part = Value::Object(part.clone());
        let needed = references::needed_by(&part, &self.definitions);
        needed.into_iter().map(|(number, schema)| (number.clone(), schema.clone())).collect()
    }

    fn put(&self, needed: Map<String, Value>, part: &mut Map<String, Value>) {
        if !needed.is_empty() {
            part.insert("$defs".into(), needed.into());
        }
        if let Some(dialect) = &self.dialect {
            part.insert("$schema".into(), dialect.clone());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_part_becomes_a_definition_and_a_small_one_stays_where_it_is() {
        let large: Value = (0..100).map(|i| json!(i)).collect();
        let document = json!({"properties": {"small": {"enum": [1, 2]}, "large": {"enum": large}},
            "additionalProperties": {"const": "x".repeat(4000)}});
        let schema = Schema::read(&document, &mut Tally::default()).unwrap();
        let part = |value: &Value| value["$ref"].as_str().map(str::to_owned);
        let properties = &schema.keywords()["properties"];
        assert_eq!(part(&properties["small"]), None);
        assert_eq!(part(&properties["large"]).as_deref(), Some("#/$defs/0"));
        assert_eq!(part(&schema.keywords()["additionalProperties"]).as_deref(), Some("#/$defs/1"));
        assert_eq!(schema.whole()["$defs"]["0"], json!({"enum": large}));
    }
}
