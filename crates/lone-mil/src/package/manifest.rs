//! `Manifest.json`: which items a package has, and which of them is the model.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;

use super::{MODEL_ITEM, PackageError, WEIGHTS_ITEM};

pub(super) const MANIFEST_FILE: &str = "Manifest.json";
const AUTHOR: &str = "com.apple.CoreML";
/// The name that Core ML looks the weights up by.
const WEIGHTS_NAME: &str = "weights";
/// The newest format there is; older ones differ in nothing that matters here.
const VERSION: [u64; 3] = [1, 0, 0];

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    file_format_version: String,
    item_info_entries: BTreeMap<String, Item>,
    root_model_identifier: String,
}

#[derive(Debug, Serialize, Deserialize)]
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

    /// Reads the manifest of the package at `package` and checks it against what is there.
    ///
    /// # Errors
    /// [`PackageError::Manifest`] naming the entry that is wrong.
    pub(super) fn open(package: &Path) -> Result<Self, PackageError> {
        let path = package.join(MANIFEST_FILE);
        let wrong = |place: String, expected: &str, found: String| PackageError::Manifest {
            path: path.clone(),
            place,
            expected: expected.into(),
            found,
        };
        let text = std::fs::read(&path).map_err(PackageError::io("read", &path))?;
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|error| wrong("JSON".into(), "a manifest", error.to_string()))?;
        if !manifest.version_is_known() {
            let found = format!("`{}`", manifest.file_format_version);
            return Err(wrong("fileFormatVersion".into(), "1.0.0 or older", found));
        }
        for (id, item) in &manifest.item_info_entries {
            let relative = Path::new(&item.path);
            let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
            if !inside || !package.join("Data").join(relative).exists() {
                let found = format!("`{}`", item.path);
                return Err(wrong(format!("item {id}"), "a path to something in Data/", found));
            }
        }
        if manifest.root().is_none() {
            let found = format!("`{}`", manifest.root_model_identifier);
            return Err(wrong("rootModelIdentifier".into(), "the identifier of an item", found));
        }
        Ok(manifest)
    }

    /// The model's path under `Data/`.
    pub(super) fn model_path(&self) -> &str {
        &self.root().expect("checked when it was opened").path
    }

    /// The path under `Data/` of the folder of weights, if it is listed.
    pub(super) fn weights_path(&self) -> Option<&str> {
        let mut items = self.item_info_entries.values();
        items.find(|item| item.name == WEIGHTS_NAME && item.author == AUTHOR).map(|item| &*item.path)
    }

    /// That the folder of weights, which the program needs, is not listed.
    pub(super) fn no_weights(&self, package: &Path, folder: &Path) -> PackageError {
        let listed = self.weights_path().map_or_else(|| "none".into(), |path| format!("`{path}`"));
        PackageError::Manifest {
            path: package.join(MANIFEST_FILE),
            place: format!("item `{WEIGHTS_NAME}`"),
            expected: format!("the folder {}", folder.display()),
            found: listed,
        }
    }

    fn root(&self) -> Option<&Item> {
        self.item_info_entries.get(&self.root_model_identifier)
    }

    fn version_is_known(&self) -> bool {
        let numbers = self.file_format_version.split('.').map(|part| part.parse().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        numbers.is_some_and(|numbers| numbers.len() == VERSION.len() && numbers[..] <= VERSION[..])
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
    use std::fs;

    use super::*;

    fn package_with(manifest: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("Data").join(WEIGHTS_ITEM)).unwrap();
        fs::write(dir.path().join("Data").join(MODEL_ITEM), b"").unwrap();
        fs::write(dir.path().join(MANIFEST_FILE), manifest).unwrap();
        dir
    }

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

    #[test]
    fn a_manifest_that_was_written_is_read() {
        let dir = package_with(&good());
        let manifest = Manifest::open(dir.path()).unwrap();
        assert_eq!(manifest.model_path(), MODEL_ITEM);
        assert_eq!(manifest.weights_path(), Some(WEIGHTS_ITEM));
    }

    #[test]
    fn unknown_keys_and_older_versions_are_accepted() {
        let text =
            good().replace("{\n    \"file", "{\n    \"extra\": 1,\n    \"file").replace("1.0.0", "0.9.0");
        Manifest::open(package_with(&text).path()).unwrap();
    }

    #[test]
    fn a_manifest_with_a_fault_is_refused_by_the_name_of_the_fault() {
        let root = identifier(MODEL_ITEM, b"model");
        let cases = [
            ("\"fileFormatVersion\": \"1.0.0\",", "", "missing field `fileFormatVersion`"),
            ("\"1.0.0\"", "\"1.0\"", "fileFormatVersion: expected 1.0.0 or older, found `1.0`"),
            ("\"1.0.0\"", "\"1.0.1\"", "fileFormatVersion: expected 1.0.0 or older, found `1.0.1`"),
            ("\"1.0.0\"", "\"a.b.c\"", "fileFormatVersion: expected 1.0.0 or older, found `a.b.c`"),
            ("\"1.0.0\"", "\"1.-1.0\"", "fileFormatVersion: expected 1.0.0 or older, found `1.-1.0`"),
            ("\"author\": \"com.apple.CoreML\",", "", "missing field `author`"),
            ("\"name\": \"weights\",", "", "missing field `name`"),
            (
                "CoreML/weights\"",
                "CoreML/lost\"",
                "a path to something in Data/, found `com.apple.CoreML/lost`",
            ),
            (
                "com.apple.CoreML/weights",
                "../Manifest.json",
                "a path to something in Data/, found `../Manifest",
            ),
            (
                &format!("Identifier\": \"{root}\""),
                "Identifier\": \"0\"",
                "the identifier of an item, found `0`",
            ),
            ("{", "", "expected a manifest"),
        ];
        for (from, to, expected) in cases {
            let dir = package_with(&good().replacen(from, to, 1));
            let message = Manifest::open(dir.path()).unwrap_err().to_string();
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
    }
}
