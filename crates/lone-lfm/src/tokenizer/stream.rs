//! Text as tokens arrive, never cut inside a character.

use super::Tokenizer;

/// What becomes of special tokens in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialText {
    /// They are written out.
    Keep,
    /// They are left out.
    Skip,
}

/// Decodes one token at a time. What it returns, put together, is what [`Tokenizer::decode`] returns for all of them.
#[derive(Debug, Clone)]
pub struct DecodeStream {
    special: SpecialText,
    /// The first bytes of a character whose other bytes are still to come; at most three.
    pending: Vec<u8>,
}

impl DecodeStream {
    /// A stream in front of the first token.
    pub fn new(special: SpecialText) -> DecodeStream {
        DecodeStream { special, pending: Vec::new() }
    }

    /// The text that `token` completes; empty while a character is incomplete.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> String {
        if self.special == SpecialText::Skip && tokenizer.is_special(token) {
            return String::new();
        }
        self.pending.extend(tokenizer.token_bytes(token).unwrap_or_default());
        let mut text = String::new();
        let mut decoded = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            decoded += chunk.valid().len() + chunk.invalid().len();
            let at_the_end = decoded == self.pending.len();
            if at_the_end && is_incomplete(chunk.invalid()) {
                decoded -= chunk.invalid().len();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.pending.drain(..decoded);
        text
    }

    /// What is left when no token follows: U+FFFD for a character that was never completed, or nothing.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// True for bytes that more bytes could complete to a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
