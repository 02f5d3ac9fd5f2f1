//! What a package says of itself to people; nothing depends on it.

use std::collections::BTreeMap;

use crate::proto::model;

/// Free text about a model, shown by Xcode and readable at run time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are those of Core ML's metadata keys")]
pub struct Metadata {
    pub short_description: String,
    pub version: String,
    pub author: String,
    pub license: String,
    /// Anything else, by key.
    pub user_defined: BTreeMap<String, String>,
}

impl Metadata {
    pub(super) fn encode(&self) -> Option<model::Metadata> {
        (*self != Metadata::default()).then(|| model::Metadata {
            short_description: self.short_description.clone(),
            version_string: self.version.clone(),
            author: self.author.clone(),
            license: self.license.clone(),
            user_defined: self.user_defined.clone(),
        })
    }

    pub(super) fn decode(message: &model::Metadata) -> Self {
        Metadata {
            short_description: message.short_description.clone(),
            version: message.version_string.clone(),
            author: message.author.clone(),
            license: message.license.clone(),
            user_defined: message.user_defined.clone(),
        }
    }
}
