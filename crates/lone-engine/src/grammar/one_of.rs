//! `oneOf`, which grammars cannot follow, as `anyOf`, which they can, where that is the same: where no value fits two of
//! the branches.
//!
//! That is certain of branches of different types, of different constants, and of objects that must differ in a
//! property, as the variants of a tagged union do. Where it is not certain `oneOf` stays, and is refused later.

use serde_json::{Map, Value};

/// The whole schema, which references begin at.
type Root = Map<String, Value>;

/// References followed one after the other, since they may lead in a circle.
const MOST_REFERENCES: usize = 8;

/// Keywords that hold one schema, a list of them, or an object of them.
const HOLD_SCHEMAS: [&str; 6] = ["items", "additionalItems", "prefixItems", "anyOf", "oneOf", "allOf"];
const HOLD_NAMED_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// `schema` with `anyOf` for every `oneOf` whose branches exclude each other.
pub(super) fn as_any_of(schema: &Map<String, Value>) -> Map<String, Value> {
    rewrite_object(schema, schema)
}

fn rewrite(schema: &Value, root: &Root) -> Value {
    match schema {
        Value::Object(object) => Value::Object(rewrite_object(object, root)),
        schema => schema.clone(),
    }
}

fn rewrite_object(object: &Map<String, Value>, root: &Root) -> Map<String, Value> {
    let is_exclusive = is_exclusive(object, root);
    let mut rewritten = Map::new();
    for (key, value) in object {
        match key.as_str() {
            "oneOf" if is_exclusive => rewritten.insert("anyOf".into(), rewrite_all(value, root)),
            // An annotation of OpenAPI's, which says what the branches say themselves.
            "discriminator" if is_exclusive => None,
            key if HOLD_SCHEMAS.contains(&key) || key == "additionalProperties" => {
                rewritten.insert(key.into(), rewrite_all(value, root))
            }
            key if HOLD_NAMED_SCHEMAS.contains(&key) => {
                rewritten.insert(key.into(), rewrite_named(value, root))
            }
            key => rewritten.insert(key.into(), value.clone()),
        };
    }
    rewritten
}

fn rewrite_all(schemas: &Value, root: &Root) -> Value {
    match schemas {
        Value::Array(list) => list.iter().map(|schema| rewrite(schema, root)).collect(),
        schema => rewrite(schema, root),
    }
}

fn rewrite_named(schemas: &Value, root: &Root) -> Value {
    let Value::Object(object) = schemas else { return schemas.clone() };
    object.iter().map(|(name, schema)| (name.clone(), rewrite(schema, root))).collect()
}

/// Whether the schema has a `oneOf`, no `anyOf` beside it, and no value fits two of its branches.
fn is_exclusive(schema: &Map<String, Value>, root: &Root) -> bool {
    let Some(branches) = schema.get("oneOf").and_then(Value::as_array) else { return false };
    let pairs = branches.iter().enumerate().flat_map(|(i, a)| branches[i + 1..].iter().map(move |b| (a, b)));
    !schema.contains_key("anyOf") && pairs.into_iter().all(|(a, b)| exclude_each_other(a, b, root))
}

/// Whether it is certain that no value fits both schemas.
fn exclude_each_other(a: &Value, b: &Value, root: &Root) -> bool {
    let (Some(a), Some(b)) = (resolve(a, root), resolve(b, root)) else { return false };
    if let (Some(a), Some(b)) = (constants(a), constants(b)) {
        return a.iter().all(|a| b.iter().all(|b| differ(a, b)));
    }
    if let (Some(a), Some(b)) = (types(a), types(b))
        && a.iter().all(|a| b.iter().all(|b| a != b))
    {
        return true;
    }
    let are_objects = [a, b].iter().any(|schema| types(schema).is_some_and(|types| types == ["object"]));
    are_objects && have_a_telling_property(a, b, root)
}

/// Whether two objects' schemas have a property that must be there and cannot be the same.
fn have_a_telling_property(a: &Map<String, Value>, b: &Map<String, Value>, root: &Root) -> bool {
    let (Some(of_a), Some(of_b)) = (properties(a), properties(b)) else { return false };
    of_a.iter().any(|(name, schema)| {
        let other = of_b.get(name).filter(|_| requires(a, name) || requires(b, name));
        other.is_some_and(|other| exclude_each_other(schema, other, root))
    })
}

fn properties(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn requires(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// The schema that `schema` is, or refers to within `root`.
fn resolve<'a>(mut schema: &'a Value, root: &'a Root) -> Option<&'a Map<String, Value>> {
    for _ in 0..MOST_REFERENCES {
        let object = schema.as_object()?;
        match object.get("$ref") {
            None => return Some(object),
            Some(reference) => {
                let (kind, name) = reference.as_str()?.strip_prefix("#/")?.split_once('/')?;
                schema = root.get(kind)?.get(name)?;
            }
        }
    }
    None
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

/// Whether two constants are certainly different ones; 1 and 1.0 are the same.
fn differ(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() != b.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => false,
        (a, b) => a != b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_rewritten(branches: &Value) -> bool {
        let schema = json!({"properties": {"x": {"oneOf": branches, "discriminator": {"propertyName": "kind"}}},
            "$defs": {"cat": variant("cat"), "dog": variant("dog"), "loop": {"$ref": "#/$defs/loop"}}});
        let x = as_any_of(schema.as_object().unwrap())["properties"]["x"].clone();
        assert_eq!(x.get("oneOf").is_some(), x.get("discriminator").is_some());
        x["anyOf"] == *branches
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
            json!([{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}, {"type": "null"}]),
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
            json!([{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/cat"}]),
            json!([{"$ref": "#/$defs/loop"}, {"type": "null"}]),
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
        assert_eq!(as_any_of(schema.as_object().unwrap()), *schema.as_object().unwrap());
    }
}
