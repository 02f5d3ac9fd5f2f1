//! Which names values, operations and functions can have.

use crate::DType;

/// Words of MIL's text that are no type names: those that coremltools renames.
const RESERVED: [&str; 10] =
    ["any", "program", "func", "tensor", "list", "dict", "tuple", "true", "false", "state"];

/// Whether `name` is a letter or `_`, then letters, digits, `_` or `@`, and no word of MIL's text.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@')
        && !RESERVED.contains(&name)
        && DType::from_name(name).is_none()
}

#[cfg(test)]
mod tests {
    use super::is_identifier;

    #[test]
    fn words_of_the_text_format_and_odd_characters_are_no_identifiers() {
        for good in ["x", "_", "k_3_new", "fp16_", "a@b"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in ["", "3k", "a-b", "a.b", "é", "fp16", "uint4", "tensor", "true", "@a"] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }
}
