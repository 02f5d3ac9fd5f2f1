//! Foreign text for a terminal, which takes control characters for commands.

use std::borrow::Cow;

/// `text` with each control character but line breaks and tabs as something that only shows: in caret notation, as
/// `^[` for ESC, or as U+FFFD where there is none.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\u{7f}' => shown.push_str("^?"),
            '\0'..' ' if is_command(character) => {
                shown.extend(['^', char::from(character as u8 + b'@')]);
            }
            _ if is_command(character) => shown.push(char::REPLACEMENT_CHARACTER),
            _ => shown.push(character),
        }
    }
    shown.into()
}

fn is_command(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_the_terminal_are_shown_and_text_is_left_alone() {
        assert!(matches!(printable("Łódź\n\t🙂"), Cow::Borrowed("Łódź\n\t🙂")));
        assert_eq!(printable("a\x1b[31mb\x07\0\r\x7f"), "a^[[31mb^G^@^M^?");
        assert_eq!(printable("\u{9b}31m"), "\u{fffd}31m");
    }

    #[test]
    fn of_all_characters_none_is_left_that_a_terminal_obeys() {
        let all: String = ('\0'..=char::MAX).collect();
        let shown = printable(&all);
        assert!(!shown.contains(is_command));
        assert!(shown.ends_with(&all[all.find('\u{a0}').unwrap()..]));
    }
}
