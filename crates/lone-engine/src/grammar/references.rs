//! Where references in a schema lead.

use serde_json::{Map, Value};

/// What every reference that has been read begins with; the number of a definition follows.
pub(super) const DEFINITION: &str = "#/$defs/";

/// What `reference` leads to in `document`, as a JSON pointer; `None` if that is outside, or a name.
pub(super) fn pointer(reference: &str, document: &Value) -> Option<String> {
    let own = document.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#'));
    let within = own.filter(|own| !own.is_empty()).and_then(|own| reference.strip_prefix(own));
    let fragment = match within.unwrap_or(reference) {
        "" if within.is_some() => "",
        reference => reference.strip_prefix('#')?,
    };
    let pointer = percent_decoded(fragment)?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// The number of the definition that `reference` leads to, after it has been read.
pub(super) fn definition(reference: &Value) -> Option<&str> {
    reference.as_str()?.strip_prefix(DEFINITION)
}

/// Definitions that `part` needs, and those need, each once.
pub(super) fn needed_by<'a>(
    part: &'a Value,
    definitions: &'a Map<String, Value>,
) -> Vec<(&'a String, &'a Value)> {
    let mut needed: Map<String, Value> = Map::new();
    let mut found = Vec::new();
    let mut pending = vec![part];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(list) => pending.extend(list),
            Value::Object(object) => {
                pending.extend(object.values());
                let reference = object.get("$ref").and_then(definition);
                let entry = reference.and_then(|number| definitions.get_key_value(number));
                if let Some((number, schema)) = entry
                    && needed.insert(number.clone(), Value::Null).is_none()
                {
                    found.push((number, schema));
                    pending.push(schema);
                }
            }
            _ => {}
        }
    }
    found
}

/// How deep `schema` goes, if a reference is followed where it is met first, as llguidance does it.
pub(super) fn depth(schema: &Value, definitions: &Map<String, Value>) -> usize {
    let mut met = std::collections::HashSet::new();
    let mut deepest = 0;
    let mut pending = vec![(schema, 1)];
    while let Some((value, depth)) = pending.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(list) => pending.extend(list.iter().rev().map(|value| (value, depth))),
            Value::Object(object) => {
                let followed = |(key, value): (&String, &'_ Value)| match definition(value) {
                    Some(number) if key == "$ref" => Some(number.to_owned()),
                    _ => None,
                };
                for (key, value) in object.iter().rev() {
                    let followed = followed((key, value)).filter(|number| !met.contains(number));
                    match followed.and_then(|number| definitions.get_key_value(&number)) {
                        Some((number, schema)) => {
                            met.insert(number.clone());
                            pending.push((schema, depth + 1));
                        }
                        None => pending.push((value, depth + 1)),
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_within_the_document_are_pointers() {
        let document = json!({"$id": "https://example.com/thing.json"});
        let table = [
            ("#", Some("")),
            ("#/$defs/a", Some("/$defs/a")),
            ("#/a%20b/c~1d", Some("/a b/c~1d")),
            ("https://example.com/thing.json", Some("")),
            ("https://example.com/thing.json#/x", Some("/x")),
            ("#name", None),
            ("other.json", None),
            ("", None),
            ("#/%zz", None),
            ("#/%é", None),
        ];
        for (reference, wanted) in table {
            assert_eq!(pointer(reference, &document).as_deref(), wanted, "{reference}");
        }
    }

    #[test]
    fn only_what_is_needed_comes_along_and_circles_end() {
        let definitions = json!({"0": {"items": {"$ref": "#/$defs/1"}}, "1": {"$ref": "#/$defs/0"}, "2": {}});
        let definitions = definitions.as_object().unwrap();
        let part = json!({"properties": {"x": {"$ref": "#/$defs/0"}}});
        let numbers: Vec<_> =
            needed_by(&part, definitions).into_iter().map(|(number, _)| number.as_str()).collect();
        assert_eq!(numbers, ["0", "1"]);
        assert!(needed_by(&json!({"const": 1}), definitions).is_empty());
    }

    #[test]
    fn a_chain_is_as_deep_as_it_is_long() {
        let chain = (0..500).map(|i| (i.to_string(), json!({"$ref": format!("#/$defs/{}", i + 1)})));
        let definitions: Map<String, Value> = chain.collect();
        let depth = depth(&json!({"$ref": "#/$defs/0"}), &definitions);
        assert!((500..510).contains(&depth), "{depth}");
    }
}
