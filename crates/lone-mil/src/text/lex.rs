//! The words of the text, with their places.

use super::parse::TextError;

/// A word of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name, a number without quotes, or hexadecimal digits: letters, digits and `_ @ . + -`.
    Word(String),
    /// A quoted string, without its quotes.
    Quoted(String),
    /// One of `( ) < > { } [ ] , : =` or `->`.
    Mark(&'static str),
    /// The end of the text.
    End,
}

impl Token {
    /// How messages call it.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Quoted(string) => format!("the string {string:?}"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// Where a token begins; lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

const MARKS: [&str; 12] = ["->", "(", ")", "<", ">", "{", "}", "[", "]", ",", ":", "="];

/// Splits `text` into tokens, the last of which is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Place)>, TextError> {
    let mut tokens = Vec::new();
    let mut place = Place { line: 1, column: 1 };
    for (i, line) in text.lines().enumerate() {
        place.line = i + 1;
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            place.column = line.len() - rest.len() + 1;
            if rest.is_empty() || rest.starts_with("//") {
                break;
            }
            let (token, length) = token(rest, place)?;
            tokens.push((token, place));
            rest = &rest[length..];
        }
    }
    tokens.push((Token::End, place));
    Ok(tokens)
}

/// The first token of `text`, which does not begin with a space, and its length.
fn token(text: &str, place: Place) -> Result<(Token, usize), TextError> {
    if let Some(mark) = MARKS.into_iter().find(|mark| text.starts_with(mark)) {
        return Ok((Token::Mark(mark), mark.len()));
    }
    if text.starts_with('"') {
        return quoted(text)
            .ok_or_else(|| TextError::syntax(place, "a closing quote", "the end of the line"));
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_@.+-".contains(c);
    let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
    match text.chars().next() {
        Some(first) if length == 0 => Err(TextError::syntax(place, "a word or a mark", format!("{first:?}"))),
        _ => Ok((Token::Word(text[..length].to_owned()), length)),
    }
}

fn quoted(text: &str) -> Option<(Token, usize)> {
    let mut string = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Token::Quoted(string), at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => string.push('\n'),
                other => string.push(other),
            },
            c => string.push(c),
        }
    }
    None
}
