//! `oneOf`, which grammars cannot follow, as `anyOf`, which they can, where that is the same: where no value fits two of
//! the branches.
//!
//! That is certain of branches of different types, of different constants, and of objects that must differ in a
//! property, as the variants of a tagged union do. Where it is not certain `oneOf` stays, and is refused later.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::references::definition;

/// References followed one after the other, since they may lead in a circle.
const MOST_REFERENCES: usize = 8;
/// Properties within properties that are compared.
const MOST_DEPTH: usize = 8;
/// Properties of which one may be the tag of all branches.
const MOST_TAGS: usize = 8;
/// Comparisons of two branches, in all of one schema, each value in them counted as one.
const MOST_COMPARISONS: usize = 100_000;
/// Keywords that hold one schema, a list of them, or an object of them.
const HOLD_SCHEMAS: [&str; 7] =
    ["items", "additionalItems", "additionalProperties", "prefixItems", "anyOf", "oneOf", "allOf"];
const HOLD_NAMED_SCHEMAS: [&str; 2] = ["properties", "patternProperties"];

/// Rewrites schemas that refer to `definitions`.
pub(super) struct Alternatives<'a> {
    definitions: &'a Map<String, Value>,
    comparisons: usize,
}

impl<'a> Alternatives<'a> {
    pub(super) fn new(definitions: &'a Map<String, Value>) -> Self {
        Alternatives { definitions, comparisons: 0 }
    }

    /// `schema` with `anyOf` for every `oneOf` whose branches exclude each other.
    pub(super) fn rewrite(&mut self, schema: &Value) -> Value {
        match schema {
            Value::Object(object) => self.rewrite_object(object).into(),
            schema => schema.clone(),
        }
    }

    fn rewrite_object(&mut self, object: &Map<String, Value>) -> Map<String, Value> {
        let is_exclusive = self.is_exclusive(object);
        let mut rewritten = Map::new();
        for (key, value) in object {
            match key.as_str() {
                "oneOf" if is_exclusive => rewritten.insert("anyOf".into(), self.rewrite_all(value)),
                // An annotation of OpenAPI's, which says what the branches say themselves.
                "discriminator" if is_exclusive => None,
                key if HOLD_SCHEMAS.contains(&key) => rewritten.insert(key.into(), self.rewrite_all(value)),
                key if HOLD_NAMED_SCHEMAS.contains(&key) => {
                    rewritten.insert(key.into(), self.rewrite_named(value))
                }
                key => rewritten.insert(key.into(), value.clone()),
            };
        }
        rewritten
    }

    fn rewrite_all(&mut self, schemas: &Value) -> Value {
        match schemas {
            Value::Array(list) => list.iter().map(|schema| self.rewrite(schema)).collect(),
            schema => self.rewrite(schema),
        }
    }

    fn rewrite_named(&mut self, schemas: &Value) -> Value {
        let Value::Object(object) = schemas else { return schemas.clone() };
        object.iter().map(|(name, schema)| (name.clone(), self.rewrite(schema))).collect()
    }

    /// Whether the schema has a `oneOf`, no `anyOf` beside it, and no value fits two of its branches.
    fn is_exclusive(&mut self, schema: &Map<String, Value>) -> bool {
        let Some(branches) = schema.get("oneOf").and_then(Value::as_array) else { return false };
        if schema.contains_key("anyOf") {
            return false;
        }
        let resolved: Option<Vec<_>> = branches.iter().map(|branch| self.resolve(branch)).collect();
        let Some(branches) = resolved else { return false };
        are_distinct(&branches) || self.have_a_tag(&branches) || self.exclude_pairwise(&branches)
    }

    /// Whether one required property has other constants in each, which must be objects.
    fn have_a_tag(&self, branches: &[&Map<String, Value>]) -> bool {
        let are_objects =
            branches.iter().all(|branch| branch.get("type").is_some_and(|kind| kind == "object"));
        let Some(candidates) = branches.first().and_then(|first| properties(first)).filter(|_| are_objects)
        else {
            return false;
        };
        candidates.keys().take(MOST_TAGS).any(|name| {
            let required = branches.iter().filter(|branch| requires(branch, name));
            let tags = required.filter_map(|branch| self.resolve(properties(branch)?.get(name)?));
            let tags: Vec<_> = tags.collect();
            tags.len() == branches.len() && are_distinct(&tags)
        })
    }

    fn exclude_pairwise(&mut self, branches: &[&Map<String, Value>]) -> bool {
        branches
            .iter()
            .enumerate()
            .all(|(i, a)| branches[i + 1..].iter().all(|b| self.exclude_each_other(a, b, 0)))
    }

    /// Whether it is certain that no value fits both schemas, which are at `depth` within branches.
    fn exclude_each_other(&mut self, a: &Map<String, Value>, b: &Map<String, Value>, depth: usize) -> bool {
        let values = |schema| constants(schema).map_or(0, |values| values.len());
        self.comparisons += 1 + values(a) + values(b);
        if self.comparisons > MOST_COMPARISONS || depth > MOST_DEPTH {
            return false;
        }
        if let (Some(of_a), Some(of_b)) = (types(a), types(b))
            && of_a.iter().all(|a| of_b.iter().all(|b| a != b))
        {
            return true;
        }
        if are_distinct(&[a, b]) {
            return true;
        }
        let are_objects = [a, b].iter().any(|schema| types(schema).is_some_and(|types| types == ["object"]));
        are_objects && self.have_a_telling_property(a, b, depth)
    }

    /// Whether two objects' schemas have a property that must be there and cannot be the same.
    fn have_a_telling_property(
        &mut self,
        a: &Map<String, Value>,
        b: &Map<String, Value>,
        depth: usize,
    ) -> bool {
        let (Some(of_a), Some(of_b)) = (properties(a), properties(b)) else { return false };
        of_a.iter().any(|(name, schema)| {
            let other = of_b.get(name).filter(|_| requires(a, name) || requires(b, name));
            let both = self.resolve(schema).zip(other.and_then(|other| self.resolve(other)));
            both.is_some_and(|(a, b)| self.exclude_each_other(a, b, depth + 1))
        })
    }

    /// The schema that `schema` is, or refers to.
    fn resolve<'s>(&self, mut schema: &'s Value) -> Option<&'s Map<String, Value>>
    where
        'a: 's,
    {
        for _ in 0..MOST_REFERENCES {
            let object = schema.as_object()?;
            match object.get("$ref") {
                None => return Some(object),
                Some(reference) => schema = self.definitions.get(definition(reference)?)?,
            }
        }
        None
    }
}

/// Whether all `schemas` list their values, and no value is listed twice. Lists and objects are not compared.
fn are_distinct(schemas: &[&Map<String, Value>]) -> bool {
    let mut met = HashSet::new();
    schemas.iter().all(|schema| {
        let names: Option<HashSet<String>> =
            constants(schema).and_then(|values| values.into_iter().map(name).collect());
        names.is_some_and(|names| names.into_iter().all(|name| met.insert(name)))
    })
}

/// What tells a constant from others; 1 and 1.0 are the same.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::Array(_) | Value::Object(_) => None,
        Value::Number(number) => {
            Some(number.as_f64().map_or_else(|| number.to_string(), |n| (n + 0.0).to_string()))
        }
        value => Some(value.to_string()),
    }
}

fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn requires(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// The only values that fit, if the schema lists them.
fn constants(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value]),
        None => Some(schema.get("enum")?.as_array()?.iter().collect()),
    }
}

/// The types of values that fit, if the schema says; integers are numbers.
fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    let word = |kind: &'_ Value| match kind.as_str()? {
        "integer" | "number" => Some("number"),
        "string" => Some("string"),
        "object" => Some("object"),
        "array" => Some("array"),
        "boolean" => Some("boolean"),
        "null" => Some("null"),
        _ => None,
    };
    if let Some(values) = constants(schema) {
        return Some(values.into_iter().map(type_of).collect());
    }
    match schema.get("type")? {
        Value::Array(kinds) => kinds.iter().map(word).collect(),
        kind => Some(vec![word(kind)?]),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rewritten(branches: &Value) -> Value {
        let definitions = json!({"0": variant("cat"), "1": variant("dog"), "2": {"$ref": "#/$defs/2"},
            "3": node("3"), "4": node("4")});
        let x = json!({"oneOf": branches, "discriminator": {"propertyName": "kind"}});
        let schema = json!({"properties": {"x": x}});
        let rewritten = Alternatives::new(definitions.as_object().unwrap()).rewrite(&schema);
        rewritten["properties"]["x"].clone()
    }

    fn is_rewritten(branches: &Value) -> bool {
        let x = rewritten(branches);
        assert_eq!(x.get("oneOf").is_some(), x.get("discriminator").is_some());
        x["anyOf"] == *branches
    }

    fn node(number: &str) -> Value {
        let next = json!({"$ref": format!("#/$defs/{number}")});
        json!({"type": "object", "properties": {"next": next}, "required": ["next"]})
    }

    fn variant(kind: &str) -> Value {
        json!({"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]})
    }

    #[test]
    fn branches_that_exclude_each_other_are_alternatives() {
        for branches in [
            json!([{"type": "string"}, {"type": ["integer", "null"]}, {"type": "array"}]),
            json!([{"const": "a"}, {"enum": ["b", "c"]}, {"type": "number"}]),
            json!([variant("cat"), variant("dog")]),
            json!([{"$ref": "#/$defs/0"}, {"$ref": "#/$defs/1"}, {"type": "null"}]),
            (0..5000).map(|i| json!({"const": i})).collect(),
            (0..2000).map(|i| variant(&i.to_string())).collect(),
        ] {
            assert!(is_rewritten(&branches), "{branches}");
        }
    }

    #[test]
    fn branches_that_may_not_are_left_alone() {
        for branches in [
            json!([{}, {}]),
            json!([{"type": "integer"}, {"type": "number"}]),
            json!([{"const": 1}, {"const": 1.0}]),
            json!([{"type": "string"}, {"minLength": 1}]),
            json!([{"$ref": "#/$defs/0"}, {"$ref": "#/$defs/0"}]),
            json!([{"$ref": "#/$defs/2"}, {"type": "null"}]),
            json!([{"$ref": "#/$defs/3"}, {"$ref": "#/$defs/4"}]),
            json!([{"const": [1]}, {"const": [2]}]),
            json!([{"const": 0.0}, {"const": -0.0}]),
            (0..3000).map(|i| json!({"type": "string", "pattern": i.to_string()})).collect(),
            // Objects without the property fit both, and so does what is no object.
            json!([{"type": "object", "properties": {"kind": {"const": 1}}}, {"type": "object", "properties": {"kind": {"const": 2}}}]),
            json!([{"properties": {"kind": {"const": 1}}, "required": ["kind"]}, {"properties": {"kind": {"const": 2}}}]),
        ] {
            assert!(!is_rewritten(&branches), "{branches}");
        }
    }

    #[test]
    fn what_only_looks_like_a_keyword_is_left_alone() {
        let schema =
            json!({"properties": {"oneOf": {"const": {"oneOf": [{"type": "string"}, {"type": "null"}]}}}});
        assert_eq!(Alternatives::new(&Map::new()).rewrite(&schema), schema);
    }
}
