//! What form the answer is to have.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Fields;
use crate::error::ApiError;

/// The form of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) enum Format {
    /// Any text.
    #[default]
    Text,
    /// JSON of this schema, which stands at `path` in the request.
    Json { schema: Value, path: String },
}

impl Format {
    /// Takes it from field `name`. Chat completions nest the schema in `json_schema`, responses do not.
    pub(crate) fn take(fields: &mut Fields, name: &str, nested: bool) -> Result<Self, ApiError> {
        let Some(object) = fields.take::<Map<String, Value>>(name)? else { return Ok(Format::Text) };
        match Format::read(object.into(), nested) {
            Ok(format) => Ok(format.within(name)),
            Err(error) => Err(error.within(name)),
        }
    }

    /// The same, part of the object at `name`.
    pub(crate) fn within(self, name: &str) -> Self {
        match self {
            Format::Text => Format::Text,
            Format::Json { schema, path } if path.is_empty() => {
                Format::Json { schema, path: name.to_owned() }
            }
            Format::Json { schema, path } => Format::Json { schema, path: format!("{name}.{path}") },
        }
    }

    fn read(mut fields: Fields, nested: bool) -> Result<Self, ApiError> {
        let kind: String = fields.require("type")?;
        let format = match kind.as_str() {
            "text" => Format::Text,
            "json_object" => Format::Json { schema: json!({"type": "object"}), path: String::new() },
            "json_schema" if nested => {
                let inner = Fields::from(fields.require::<Map<String, Value>>("json_schema")?);
                Format::schema(inner, "json_schema.schema").map_err(|error| error.within("json_schema"))?
            }
            "json_schema" => return Format::schema(fields, "schema"),
            _ => {
                let problem = format!("is {kind:?}, and must be text, json_object or json_schema");
                return Err(ApiError::field("type", problem).coded("invalid_value"));
            }
        };
        fields.finish()?;
        Ok(format)
    }

    /// The name and description of a schema are for people; all are followed to the letter, `strict` or not.
    fn schema(mut fields: Fields, path: &str) -> Result<Self, ApiError> {
        fields.require::<String>("name")?;
        fields.take::<String>("description")?;
        fields.take::<bool>("strict")?;
        let schema = fields.take::<Value>("schema")?.unwrap_or_else(|| json!({"type": "object"}));
        fields.finish()?;
        Ok(Format::Json { schema, path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(format: Value) -> Result<Format, String> {
        let mut fields = Fields::from(Map::from_iter([("response_format".to_owned(), format)]));
        Format::take(&mut fields, "response_format", true).map_err(|error| {
            serde_json::to_value(error.body()).unwrap()["error"]["param"].as_str().unwrap().to_owned()
        })
    }

    #[test]
    fn forms_are_read_and_the_place_of_a_schema_is_kept() {
        assert_eq!(take(Value::Null), Ok(Format::Text));
        assert_eq!(take(json!({"type": "text"})), Ok(Format::Text));
        let object = Format::Json { schema: json!({"type": "object"}), path: "response_format".into() };
        assert_eq!(take(json!({"type": "json_object"})), Ok(object));
        let schema =
            json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"a": 1}, "strict": true}});
        let path = "response_format.json_schema.schema".to_owned();
        assert_eq!(take(schema), Ok(Format::Json { schema: json!({"a": 1}), path }));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let table = [
            (json!({"type": "xml"}), "response_format.type"),
            (json!({}), "response_format.type"),
            (json!({"type": "json_schema"}), "response_format.json_schema"),
            (json!({"type": "json_schema", "json_schema": {}}), "response_format.json_schema.name"),
            (json!({"type": "json_object", "schema": {}}), "response_format.schema"),
        ];
        for (format, param) in table {
            assert_eq!(take(format).unwrap_err(), param);
        }
    }
}
