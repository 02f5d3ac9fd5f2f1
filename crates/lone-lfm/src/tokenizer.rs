//! Text to tokens and back, by tokenizer.json.
//!
//! Encoding is the `tokenizers` crate's. Decoding is done here, byte by byte: a token of a byte-level vocabulary stands
//! for bytes, not for characters, and a stream has to hold back the bytes of a character that is not complete yet.

mod stream;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokenizers::DecoderWrapper;

pub use stream::{DecodeStream, SpecialText};

use crate::special_tokens::{SettingsError, SpecialTokens};

/// A tokenizer that cannot be had or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The directory has no tokenizer.json; a caller may go on with token ids alone.
    #[error("no tokenizer.json in {}", dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// The file is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// tokenizer.json is damaged, or of a kind that is not known.
    #[error("{} is not a usable tokenizer: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of settings beside it is damaged.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A text could not be encoded.
    #[error("the text cannot be encoded: {reason}")]
    Encode {
        /// What the tokenizer said.
        reason: String,
    },
}

/// A byte-level tokenizer.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    special_tokens: SpecialTokens,
    /// The byte that each letter of a vocabulary entry stands for.
    byte_of_letter: HashMap<char, u8>,
}

impl Tokenizer {
    /// Opens tokenizer.json of a directory, and the names of its special tokens.
    ///
    /// # Errors
    /// [`TokenizerError::Missing`] where there is no tokenizer.json; others name the file that is wrong.
    pub fn open(dir: &Path) -> Result<Tokenizer, TokenizerError> {
        let path = dir.join("tokenizer.json");
        let bytes = crate::regular_file::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => TokenizerError::Missing { dir: dir.to_owned() },
            _ => TokenizerError::Read { path: path.clone(), source },
        })?;
        Tokenizer::from_json(&bytes, SpecialTokens::open(dir)?)
            .map_err(|reason| TokenizerError::Damaged { path, reason })
    }

    /// Parses the text of tokenizer.json; an error says what is wrong with it.
    fn from_json(bytes: &[u8], special_tokens: SpecialTokens) -> Result<Tokenizer, String> {
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
        if !matches!(inner.get_decoder(), Some(DecoderWrapper::ByteLevel(_))) {
            return Err("its decoder is not \"ByteLevel\"".to_owned());
        }
        // A file may ask for both; a prompt is neither cut nor filled up behind the user's back.
        inner.with_truncation(None).map_err(|error| error.to_string())?;
        inner.with_padding(None);
        Ok(Tokenizer { inner, special_tokens, byte_of_letter: byte_letters() })
    }

    /// Tokens of `text`; special tokens written out in it become themselves, and none are added.
    ///
    /// # Errors
    /// [`TokenizerError::Encode`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.inner.encode_fast(text, false);
        encoding
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|error| TokenizerError::Encode { reason: error.to_string() })
    }

    /// Text of `tokens`; bytes that are no UTF-8 become U+FFFD, tokens outside the vocabulary nothing.
    pub fn decode(&self, tokens: &[u32], special: SpecialText) -> String {
        let mut stream = DecodeStream::new(special);
        let mut text: String = tokens.iter().map(|&token| stream.push(self, token)).collect();
        text.push_str(&stream.finish());
        text
    }

    /// The bytes a token stands for; `None` outside the vocabulary.
    pub fn token_bytes(&self, token: u32) -> Option<Vec<u8>> {
        let piece = self.piece(token)?;
        let bytes: Option<Vec<u8>> =
            piece.chars().map(|letter| self.byte_of_letter.get(&letter).copied()).collect();
        Some(bytes.unwrap_or_else(|| piece.into_bytes()))
    }

    /// A token as the vocabulary spells it; `None` outside the vocabulary.
    pub fn piece(&self, token: u32) -> Option<String> {
        self.inner.id_to_token(token)
    }

    /// The token with this spelling in the vocabulary, such as `<|im_end|>`.
    pub fn token(&self, piece: &str) -> Option<u32> {
        self.inner.token_to_id(piece)
    }

    /// Whether a token is marked as special: structure, not text.
    pub fn is_special(&self, token: u32) -> bool {
        self.piece(token).is_some_and(|piece| self.inner.get_added_vocabulary().is_special_token(&piece))
    }

    /// Entries of the vocabulary, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// How many tokens have ids that a model of `vocab_size` rows has no row for.
    pub fn tokens_outside(&self, vocab_size: usize) -> usize {
        self.inner.get_vocab(true).into_values().filter(|&token| token as usize >= vocab_size).count()
    }

    /// Names of the tokens with a role.
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special_tokens
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("vocab_size", &self.vocab_size()).finish_non_exhaustive()
    }
}

/// The letters of byte-level vocabularies: printable Latin-1 characters stand for themselves, and the other bytes, in
/// order, for the characters from U+0100 on.
fn byte_letters() -> HashMap<char, u8> {
    let printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let themselves = (0..=255u8).filter(printable).map(|byte| (char::from(byte), byte));
    let moved = ('\u{100}'..).zip((0..=255u8).filter(|byte| !printable(byte)));
    themselves.chain(moved).collect()
}

#[cfg(test)]
mod tests;
