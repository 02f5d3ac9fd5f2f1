//! The fields of a request's JSON object, taken one by one, so that whatever nobody took can be refused by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ApiError;

/// Fields that nobody has taken yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Takes a field. One that is absent or `null` is `None`.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        match self.0.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => typed(name, value).map(Some),
        }
    }

    /// Takes a field that must be there.
    pub(crate) fn require<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ApiError> {
        self.take(name)?
            .ok_or_else(|| ApiError::field(name, "is missing").coded("missing_required_parameter"))
    }

    /// Takes fields that make no difference here, whatever they hold.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.0.shift_remove(*name);
        }
    }

    /// Takes a field of which only so many values are supported.
    pub(crate) fn only(&mut self, name: &str, supported: &[Value]) -> Result<(), ApiError> {
        match self.take::<Value>(name)? {
            Some(value) if !supported.contains(&value) => {
                let supported: Vec<String> = supported.iter().map(Value::to_string).collect();
                let message = format!("is supported only as {}", supported.join(" or "));
                Err(ApiError::field(name, message).coded("unsupported_value"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses the fields that nobody took.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        match self.0.into_iter().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => Err(ApiError::unknown_field(name)),
            None => Ok(()),
        }
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(object: Map<String, Value>) -> Self {
        Fields(object)
    }
}

/// `value`, which stands at `path`, as a `T`.
pub(crate) fn typed<T: DeserializeOwned>(path: &str, value: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let separator = if inner == "." || inner.starts_with('[') { "" } else { "." };
        let inner = if inner == "." { "" } else { inner.as_str() };
        ApiError::field(format!("{path}{separator}{inner}"), format!("is wrong: {}", error.inner()))
            .coded("invalid_value")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields(value.as_object().unwrap().clone())
    }

    fn refusal<T: std::fmt::Debug>(outcome: Result<T, ApiError>) -> Value {
        serde_json::to_value(outcome.unwrap_err().body()).unwrap()["error"].take()
    }

    #[test]
    fn absent_and_null_are_the_same() {
        let mut fields = fields(json!({"a": null, "c": 3}));
        assert_eq!(fields.take::<u32>("a").unwrap(), None);
        assert_eq!(fields.take::<u32>("b").unwrap(), None);
        assert_eq!(fields.take::<u32>("c").unwrap(), Some(3));
        fields.finish().unwrap();
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_with_its_path() {
        let mut fields = fields(json!({"n": "x", "list": [1, "x"]}));
        assert_eq!(refusal(fields.take::<u32>("n"))["param"], "n");
        let error = refusal(fields.take::<Vec<u32>>("list"));
        assert_eq!(error["param"], "list[1]");
        assert!(error["message"].as_str().unwrap().contains("expected u32"), "{error}");
    }

    #[test]
    fn what_nobody_took_is_refused_by_name() {
        let error = refusal(fields(json!({"a": null, "surprise": 1})).finish());
        assert_eq!(
            (error["param"].as_str(), error["code"].as_str()),
            (Some("surprise"), Some("unsupported_parameter"))
        );
    }

    #[test]
    fn a_field_with_one_supported_value_takes_no_other() {
        assert!(fields(json!({"echo": false})).only("echo", &[json!(false)]).is_ok());
        assert_eq!(refusal(fields(json!({"echo": true})).only("echo", &[json!(false)]))["param"], "echo");
    }
}
