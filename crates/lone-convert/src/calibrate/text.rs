//! Calibration text as tokens.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use lone_lfm::{ChatTemplate, Checkpoint, Conversation, Tokenizer};
use serde::Deserialize;
use serde_json::Value;

use super::Calibration;
use crate::ConvertError;

const BUILTIN: &str = include_str!("builtin.json");

/// Tokens of a sequence at most.
const SEQUENCE_TOKENS: usize = 512;

/// Tokens of all sequences at most.
const MOST_TOKENS: usize = 16_384;

/// Tokens of all sequences at most, whatever they cost.
const CHEAP_TOKENS: usize = 4096;

/// Bytes of a plain text that are read: many times what so many tokens are.
const MOST_BYTES: usize = 64 * MOST_TOKENS;

/// Multiplications that more tokens than those may take in one pass through the model: minutes.
const MOST_WORK: usize = 1 << 42;

/// A conversation, or a piece of plain text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Conversation { messages: Vec<Value>, tools: Option<Vec<Value>> },
    Plain(String),
}

/// Token sequences of the calibration text, as many as are worth their while.
///
/// # Errors
/// [`ConvertError::Calibration`] if there is no tokenizer, or the file cannot be read or is empty.
pub(crate) fn sequences(
    checkpoint: &Checkpoint,
    calibration: &Calibration,
) -> Result<Vec<Vec<u32>>, ConvertError> {
    let mut parameters = 0;
    for layer in 0..checkpoint.config().layers.len() {
        checkpoint.layer(layer).map(|tensor| parameters += tensor.len());
    }
    let most_tokens = (MOST_WORK / parameters.max(1)).clamp(CHEAP_TOKENS, MOST_TOKENS);
    tokens(checkpoint.dir(), calibration, most_tokens)
}

/// By the tokenizer and template of the checkpoint in `dir`.
fn tokens(dir: &Path, calibration: &Calibration, most_tokens: usize) -> Result<Vec<Vec<u32>>, ConvertError> {
    let texts = match calibration {
        Calibration::Builtin => serde_json::from_str(BUILTIN).expect("the text that comes with lone"),
        Calibration::File(path) => read(path)?,
    };
    let template = ChatTemplate::open(dir).map_err(ConvertError::calibration)?;
    let tokenizer = Tokenizer::open(dir).map_err(ConvertError::calibration)?;
    let mut sequences = Vec::new();
    let mut left = most_tokens;
    for text in texts {
        if left == 0 {
            break;
        }
        let text = match text {
            Text::Plain(text) => text,
            Text::Conversation { messages, tools } => {
                let conversation = Conversation {
                    tools: tools.as_deref(),
                    add_generation_prompt: false,
                    ..Conversation::new(&messages)
                };
                template.render(&conversation).map_err(ConvertError::calibration)?
            }
        };
        let encoded = tokenizer.encode(&text).map_err(ConvertError::calibration)?;
        for sequence in encoded.chunks(SEQUENCE_TOKENS) {
            let sequence = &sequence[..sequence.len().min(left)];
            left -= sequence.len();
            if !sequence.is_empty() {
                sequences.push(sequence.to_vec());
            }
        }
    }
    if sequences.is_empty() {
        return Err(ConvertError::calibration("there is no text"));
    }
    Ok(sequences)
}

fn read(path: &Path) -> Result<Vec<Text>, ConvertError> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(vec![Text::Plain(beginning(path).map_err(ConvertError::io("read", path))?)]);
    }
    let text = fs::read_to_string(path).map_err(ConvertError::io("read", path))?;
    serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        ConvertError::calibration(format_args!(
            "{path} must be a JSON list of texts and of objects with `messages` and `tools`: {error}"
        ))
    })
}

/// As much of a text as may be needed, cut between two characters.
fn beginning(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES as u64).read_to_end(&mut bytes)?;
    if let Err(error) = str::from_utf8(&bytes)
        && error.error_len().is_none()
        && bytes.len() == MOST_BYTES
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8: see byte {at}"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    fn model(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
    }

    fn of_file(name: &str, content: &str) -> Result<Vec<Vec<u32>>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        tokens(&model("tiny-lfm3"), &Calibration::File(path), MOST_TOKENS).map_err(|error| error.to_string())
    }

    #[test]
    fn the_text_that_comes_with_lone_has_no_question_of_the_exams() {
        let asked = |messages: &[Value]| -> Vec<String> {
            let of_user = messages.iter().filter(|message| message["role"] == "user");
            of_user.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
        };
        let mut builtin = BTreeSet::new();
        for text in serde_json::from_str::<Vec<Text>>(BUILTIN).unwrap() {
            if let Text::Conversation { messages, .. } = text {
                builtin.extend(asked(&messages));
            }
        }
        for name in ["tiny-lfm2", "tiny-lfm3"] {
            let exam = fs::read(model(name).join("exam.json")).unwrap();
            let exam: Value = serde_json::from_slice(&exam).unwrap();
            for question in exam["questions"].as_array().unwrap() {
                for text in asked(question["messages"].as_array().unwrap()) {
                    assert!(!builtin.contains(&text), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_text_that_comes_with_lone_is_thousands_of_tokens_in_short_sequences() {
        let sequences = tokens(&model("tiny-lfm3"), &Calibration::Builtin, MOST_TOKENS).unwrap();
        assert!(sequences.iter().all(|sequence| (1..=SEQUENCE_TOKENS).contains(&sequence.len())));
        assert!((4096..=MOST_TOKENS).contains(&sequences.iter().map(Vec::len).sum()));
    }

    #[test]
    fn a_file_is_plain_text_or_by_its_name_json() {
        let plain = of_file("t.txt", "[\"ab\", \"ab\"]").unwrap();
        assert_eq!(plain.len(), 1);
        let list = of_file("t.json", "[\"ab\", {\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}]");
        assert_eq!(list.unwrap().len(), 2);
        assert!(of_file("t.json", "ab").unwrap_err().contains("t.json must be a JSON list"));
    }

    #[test]
    fn a_long_text_is_cut_into_sequences_and_ends_somewhere() {
        let lengths = |repeats| -> Vec<usize> {
            of_file("t.txt", &"one two three ".repeat(repeats)).unwrap().iter().map(Vec::len).collect()
        };
        assert_eq!(lengths(200)[0], SEQUENCE_TOKENS);
        assert_eq!(lengths(10_000).iter().sum::<usize>(), MOST_TOKENS);
    }

    #[test]
    fn of_a_text_far_too_long_only_the_beginning_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.txt");
        // The limit lies within a character.
        let text = "xx".to_owned() + &"\u{20ac}".repeat(MOST_BYTES / 3);
        fs::write(&path, [text.as_bytes(), b"\xff"].concat()).unwrap();
        let read = beginning(&path).unwrap();
        assert!((MOST_BYTES - 3..MOST_BYTES).contains(&read.len()) && text.starts_with(&read));
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_refused_with_the_place() {
        for bytes in [&b"ab\xff"[..], b"ab\xe2\x82"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("t.txt");
            fs::write(&path, bytes).unwrap();
            assert_eq!(beginning(&path).unwrap_err().to_string(), "not UTF-8: see byte 2");
        }
    }

    #[test]
    fn no_text_is_refused() {
        assert_eq!(of_file("t.json", "[]").unwrap_err(), "cannot calibrate: there is no text");
    }
}
