//! `Manifest.json`: which items a package has, and which of them is the model.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use super::{MODEL_ITEM, WEIGHTS_ITEM};

pub(super) const MANIFEST_FILE: &str = "Manifest.json";
const AUTHOR: &str = "com.apple.CoreML";
/// The name that Core ML looks the weights up by.
const WEIGHTS_NAME: &str = "weights";
/// The newest format there is; older ones differ in nothing that matters here.
const VERSION: [u64; 3] = [1, 0, 0];

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    file_format_version: String,
    item_info_entries: BTreeMap<String, Item>,
    root_model_identifier: String,
}

#[derive(Debug, Serialize)]
struct Item {
    author: String,
    description: String,
    name: String,
    path: String,
}

impl Manifest {
    /// The manifest of a package whose model file is `model`. Identifiers follow from those bytes.
    pub(super) fn of_model(model: &[u8]) -> Self {
        let item = |description: &str, name: &str, path: &str| Item {
            author: AUTHOR.into(),
            description: description.into(),
            name: name.into(),
            path: path.into(),
        };
        let root = identifier(MODEL_ITEM, model);
        let entries = [
            (root.clone(), item("CoreML Model Specification", "model.mlmodel", MODEL_ITEM)),
            (identifier(WEIGHTS_ITEM, model), item("CoreML Model Weights", WEIGHTS_NAME, WEIGHTS_ITEM)),
        ];
        Manifest {
            file_format_version: VERSION.map(|n| n.to_string()).join("."),
            item_info_entries: entries.into(),
            root_model_identifier: root,
        }
    }

    /// The text, formatted as Apple's tools do.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut json = Vec::new();
        let formatter = PrettyFormatter::with_indent(b"    ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, formatter);
        self.serialize(&mut serializer).expect("strings and maps of strings become JSON");
        json
    }
}

/// A UUID (version 8, made by a rule of one's own) that follows from an item's path and the model's bytes.
fn identifier(item: &str, model: &[u8]) -> String {
    // 128-bit FNV-1a: identifiers need to differ, not to withstand an attack.
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = item.bytes().chain(model.iter().copied());
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    let version_and_variant = (hash & !(0xf << 76) & !(0b11 << 62)) | (8 << 76) | (0b10 << 62);
    let hex = format!("{version_and_variant:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        String::from_utf8(Manifest::of_model(b"model").to_json()).unwrap()
    }

    #[test]
    fn a_manifest_is_the_text_that_apples_tools_write() {
        let root = identifier(MODEL_ITEM, b"model");
        let weights = identifier(WEIGHTS_ITEM, b"model");
        let text = good();
        assert!(
            text.starts_with(
                "{\n    \"fileFormatVersion\": \"1.0.0\",\n    \"itemInfoEntries\": {\n        \""
            )
        );
        assert!(text.contains(&format!(
            "        \"{weights}\": {{\n            \"author\": \"com.apple.CoreML\",\n            \"description\": \
             \"CoreML Model Weights\",\n            \"name\": \"weights\",\n            \"path\": \
             \"com.apple.CoreML/weights\"\n        }}"
        )));
        assert!(text.ends_with(&format!("    \"rootModelIdentifier\": \"{root}\"\n}}")));
    }

    #[test]
    fn identifiers_follow_from_item_and_model_and_look_like_uuids() {
        let id = identifier(MODEL_ITEM, b"model");
        assert_eq!(id, identifier(MODEL_ITEM, b"model"));
        assert_ne!(id, identifier(MODEL_ITEM, b"another"));
        assert_ne!(id, identifier(WEIGHTS_ITEM, b"model"));
        assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "8");
        assert!(["8", "9", "a", "b"].contains(&&id[19..20]));
    }
}
