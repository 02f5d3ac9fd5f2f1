//! Where turns come from: an editor on a terminal, or the lines of whatever stdin is.

use std::io::{self, BufRead, IsTerminal};

use super::editor::Editor;
use crate::commands::Context;
use crate::failure::{Failure, UserError};

/// What opens and closes a text of several lines.
const FENCE: &str = "\"\"\"";

/// A turn or a command as it was given, or why it cannot be taken.
pub(super) type Line = Result<String, UserError>;

/// A source of turns and commands.
pub(super) struct Input<'a> {
    context: &'a Context,
    source: Source,
}

enum Source {
    Editor(Box<Editor>),
    Lines,
}

impl<'a> Input<'a> {
    /// The editor if somebody sits in front of a terminal that can have one.
    pub(super) fn open(context: &'a Context) -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let editor = if is_terminal { Editor::open(context) } else { None };
        Input { context, source: editor.map_or(Source::Lines, |editor| Source::Editor(editor.into())) }
    }

    /// Whether somebody sees the prompts.
    pub(super) fn is_interactive(&self) -> bool {
        matches!(self.source, Source::Editor(_))
    }

    /// The next turn or command; `None` at the end. While it waits, a signal ends the process at once.
    ///
    /// # Errors
    /// If stdin cannot be read, or ends inside a text of several lines; [`Failure::Interrupted`] if the program was
    /// asked to end, which without an editor is what Ctrl-C means.
    pub(super) fn next(&mut self) -> Result<Option<Line>, Failure> {
        let goes_on = match self.source {
            Source::Editor(_) => self.context.interrupt.take_back(),
            Source::Lines => !self.context.interrupt.is_raised(),
        };
        if !goes_on {
            return Err(Failure::Interrupted(String::new()));
        }
        let source = &mut self.source;
        let context = self.context;
        context.interrupt.while_idle(|| match source {
            Source::Editor(editor) => editor.next(context),
            Source::Lines => next_of(&mut io::stdin().lock()),
        })
    }
}

/// The next line, or lines where a fence is open.
fn next_of(lines: &mut impl BufRead) -> Result<Option<Line>, Failure> {
    let mut text = Vec::new();
    let mut read = |text: &mut Vec<u8>| {
        let read = lines.read_until(b'\n', text);
        read.map_err(|error| Failure::user(format_args!("cannot read stdin: {error}")))
    };
    if read(&mut text)? == 0 {
        return Ok(None);
    }
    let mut is_open = is_open(&String::from_utf8_lossy(&text));
    while is_open {
        let start = text.len();
        if read(&mut text)? == 0 {
            return Err(Failure::user("stdin ends before the \"\"\" that closes a text"));
        }
        // No more than the new line is looked at: a text may have many.
        is_open = !String::from_utf8_lossy(&text[start..]).trim_end().ends_with(FENCE);
    }
    Ok(Some(String::from_utf8(text).map_err(|_| no_text())))
}

/// What to say of bytes that are no text.
pub(super) fn no_text() -> UserError {
    UserError::new("this line is not UTF-8, and was left out")
}

/// Whether `text` begins with a fence that is not closed yet.
pub(super) fn is_open(text: &str) -> bool {
    text.trim_start().starts_with(FENCE) && block(text).is_none()
}

/// What is between the fences, without a line break next to either; `None` for a text that is not in fences.
pub(super) fn block(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix(FENCE)?.strip_suffix(FENCE)?;
    let inside = inside.strip_prefix("\r\n").or(inside.strip_prefix('\n')).unwrap_or(inside);
    Some(inside.strip_suffix("\r\n").or(inside.strip_suffix('\n')).unwrap_or(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut bytes = text.as_bytes();
        std::iter::from_fn(|| next_of(&mut bytes).unwrap()).map(Result::unwrap).collect()
    }

    #[test]
    fn a_line_that_is_no_text_is_refused_and_the_next_one_is_taken() {
        let mut bytes = &b"a\xff\n\"\"\"b\nc\xe9\"\"\"\nd\n"[..];
        let mut next = || next_of(&mut bytes).unwrap();
        assert_eq!((next(), next()), (Some(Err(no_text())), Some(Err(no_text()))));
        assert_eq!((next(), next()), (Some(Ok("d\n".into())), None));
    }

    #[test]
    fn each_line_is_a_turn_and_so_is_what_fences_hold() {
        assert_eq!(all("a\n\nb"), ["a\n", "\n", "b"]);
        assert_eq!(all("\"\"\"a\n\nb\"\"\"\nc\n"), ["\"\"\"a\n\nb\"\"\"\n", "c\n"]);
    }

    #[test]
    fn a_text_ends_with_the_line_that_ends_with_a_fence_however_it_is_divided() {
        for text in [
            "\"\"\"\"\n\"\"\"\n",
            " \"\"\" a\n\n \n\"\" \"\n  b \"\"\" \u{a0}\n",
            "\"\"\"\n\"\"\"\"\"\n",
            "\"\"\"\"\"\"\n",
            "\"\"\"\n\"\"\"",
        ] {
            assert_eq!(all(text), [text]);
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            for count in 1..lines.len() {
                assert!(is_open(&lines[..count].concat()), "{count} lines of {text:?}");
            }
            assert!(!is_open(text), "{text:?}");
        }
    }

    /// With a look at all of the text at each line this would take minutes.
    #[test]
    fn a_text_of_very_many_lines_is_read() {
        let text = format!("\"\"\"\n{}\"\"\"\n", "line\n".repeat(400_000));
        assert_eq!(all(&text), [text]);
    }

    #[test]
    fn a_fence_that_is_never_closed_is_an_error() {
        let Err(Failure::User(error)) = next_of(&mut "\"\"\"a\nb\n".as_bytes()) else {
            panic!("it was taken")
        };
        assert_eq!(error.message, "stdin ends before the \"\"\" that closes a text");
    }

    #[test]
    fn fences_go_with_the_line_breaks_beside_them() {
        assert_eq!(block("\"\"\"\na\n\nb\n\"\"\"\n"), Some("a\n\nb"));
        assert_eq!(block("\"\"\"\r\na\r\n\"\"\""), Some("a"));
        assert_eq!(block("\"\"\"a \"b\" \"\"\""), Some("a \"b\" "));
        assert_eq!((block("a"), block("\"\"\"\""), block("\"\"\"\"\"\"")), (None, None, Some("")));
        assert!(
            is_open("  \"\"\"a") && is_open("\"\"\"\"") && !is_open("a \"\"\"") && !is_open("\"\"\"a\"\"\"")
        );
    }
}
