//! Values as Python's `str` and `repr` spell them.
//!
//! Templates print tool arguments with `{{ value }}` and `|string`; minijinja spells most values as Python does, but
//! not every float, and not the letters of strings inside lists that Python holds unprintable.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::{Tuple, ValueKind};

use super::json::MAX_DEPTH;

/// `str(value)`.
pub(super) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => {
            let mut out = String::new();
            repr(value, 0, &mut out);
            out
        }
    }
}

fn repr(value: &Value, depth: usize, out: &mut String) {
    if depth > MAX_DEPTH {
        return out.push_str("...");
    }
    match value.kind() {
        ValueKind::String => string(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float));
        }
        ValueKind::Seq => {
            let is_tuple = value.downcast_object_ref::<Tuple>().is_some();
            let (open, close) = if is_tuple { ('(', ')') } else { ('[', ']') };
            let items: Vec<Value> = value.try_iter().into_iter().flatten().collect();
            out.push(open);
            separated(&items, out, |item, out| repr(item, depth + 1, out));
            out.push_str(if is_tuple && items.len() == 1 { "," } else { "" });
            out.push(close);
        }
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter().into_iter().flatten().collect();
            out.push('{');
            separated(&keys, out, |key, out| {
                repr(key, depth + 1, out);
                out.push_str(": ");
                repr(&value.get_item(key).unwrap_or_default(), depth + 1, out);
            });
            out.push('}');
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        _ => out.push_str(&value.to_string()),
    }
}

fn separated(items: &[Value], out: &mut String, mut write: impl FnMut(&Value, &mut String)) {
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        write(item, out);
    }
}

/// `repr` of a string: in single quotes, unless only double ones spare an escape.
fn string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if letter == quote => out.extend(['\\', quote]),
            ' '..='~' => out.push(letter),
            _ if is_printable(letter) => out.push(letter),
            _ => {
                // Writing to a String cannot fail.
                let _ = match u32::from(letter) {
                    code @ ..=0xff => write!(out, "\\x{code:02x}"),
                    code @ ..=0xffff => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// `str.isprintable`: neither control, format, unassigned nor separator. Rust escapes just these, except for marks that
/// open a string; hence the letter in front.
fn is_printable(letter: char) -> bool {
    let text: String = ['a', letter].into_iter().collect();
    text.escape_debug().nth(1) == Some(letter)
}

/// `repr` of a float: the shortest digits that read back the same, with an exponent below 1e-4 and from 1e16 on.
pub(super) fn float(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_spelled_as_python_spells_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn strings_inside_containers_are_escaped_as_python_escapes_them() {
        let value = Value::from_iter([
            "it's",
            "both '\"",
            "é e\u{301} 🧪",
            "\u{a0}\u{2028}\u{200b}\0\u{e000}\u{e0001}",
        ]);
        let expected = r#"["it's", 'both \'"', 'é é 🧪', '\xa0\u2028\u200b\x00\ue000\U000e0001']"#;
        assert_eq!(text(&value), expected.replace("é é", "é e\u{301}"));
    }

    #[test]
    fn containers_nested_without_end_are_cut() {
        let deep = (0..MAX_DEPTH * 2).fold(Value::from(1), |inner, _| Value::from_iter([inner]));
        assert!(text(&deep).contains("[...]"));
    }
}
