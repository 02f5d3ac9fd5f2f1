//! Names of tokens with a role, such as `bos_token`, as tokenizer_config.json and special_tokens_map.json give them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Role to token text, in the order of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    by_role: Vec<(String, String)>,
}

/// A file of token settings that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a JSON object.
    #[error("{} is not a JSON object: {reason}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
}

impl SpecialTokens {
    /// Reads the roles of a checkpoint directory; none where it has neither file.
    ///
    /// # Errors
    /// [`SettingsError`] names a file that is there and cannot be used.
    pub fn open(dir: &Path) -> Result<SpecialTokens, SettingsError> {
        let mut tokens = SpecialTokens::default();
        for file in ["tokenizer_config.json", "special_tokens_map.json"] {
            if let Some(object) = read_settings(&dir.join(file))? {
                tokens.add(&object);
            }
        }
        Ok(tokens)
    }

    /// Roles and their tokens.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_role.iter().map(|(role, token)| (role.as_str(), token.as_str()))
    }

    /// The token of a role, such as `eos_token`.
    pub fn get(&self, role: &str) -> Option<&str> {
        self.iter().find_map(|(name, token)| (name == role).then_some(token))
    }

    /// Token that a text starts with.
    pub fn bos(&self) -> Option<&str> {
        self.get("bos_token")
    }

    /// Token that ends an answer.
    pub fn eos(&self) -> Option<&str> {
        self.get("eos_token")
    }

    /// Adds every `*_token` field that is a string, or an object with its string under `content`.
    fn add(&mut self, object: &Map<String, Value>) {
        for (role, value) in object.iter().filter(|(role, _)| role.ends_with("_token")) {
            let token = value.as_str().or_else(|| value.get("content")?.as_str());
            if let Some(token) = token.filter(|_| self.get(role).is_none()) {
                self.by_role.push((role.clone(), token.to_owned()));
            }
        }
    }
}

/// A JSON object from `path`, or `None` where there is no such file.
pub(crate) fn read_settings(path: &Path) -> Result<Option<Map<String, Value>>, SettingsError> {
    let text = match crate::regular_file::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SettingsError::Read { path: path.to_owned(), source }),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| SettingsError::Json { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_strings_or_objects_and_the_tokenizers_own_file_wins() {
        let dir = tempfile::TempDir::new().unwrap();
        let config = r#"{"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "unk_token": null,
            "add_bos_token": true, "model_max_length": 5}"#;
        std::fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
        std::fs::write(dir.path().join("special_tokens_map.json"), r#"{"bos_token": "x", "pad_token": "p"}"#)
            .unwrap();
        let tokens = SpecialTokens::open(dir.path()).unwrap();
        let roles: Vec<_> = tokens.iter().collect();
        assert_eq!(roles, [("bos_token", "<s>"), ("eos_token", "</s>"), ("pad_token", "p")]);
        assert_eq!((tokens.bos(), tokens.eos()), (Some("<s>"), Some("</s>")));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::TempDir::new().unwrap();
        assert_eq!(SpecialTokens::open(dir.path()).unwrap(), SpecialTokens::default());
        std::fs::write(dir.path().join("tokenizer_config.json"), "[1]").unwrap();
        let error = SpecialTokens::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("tokenizer_config.json is not a JSON object"), "{error}");
    }
}
