//! What a checkpoint directory holds that deserves a word but no refusal.

use std::fmt;

/// One remark about a checkpoint; callers decide where it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The same quantity stands in config.json twice, with two values; the new spelling was used.
    SpellingsDiffer {
        /// The spelling that won.
        new: String,
        /// Its value, as JSON.
        new_value: String,
        /// The spelling that lost.
        old: String,
        /// Its value, as JSON.
        old_value: String,
    },
    /// A field that changes nothing in this model.
    FieldIgnored {
        /// Full name of the field.
        field: String,
        /// Its value, as JSON.
        value: String,
        /// Why it changes nothing.
        reason: &'static str,
    },
    /// A tensor in the weights that the configuration has no place for.
    UnexpectedTensor {
        /// Name of the tensor.
        name: String,
        /// File that holds it.
        file: String,
    },
    /// `lm_head.weight` is stored although the head is tied to the embeddings; the stored head is not used.
    TiedHeadStored,
    /// A token with a role that the vocabulary does not contain: it ends no answer, and begins no prompt.
    TokenOutsideVocabulary {
        /// Field that names the token.
        field: String,
        /// The token.
        token: u32,
        /// V.
        vocab_size: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::SpellingsDiffer { new, new_value, old, old_value } => {
                write!(
                    f,
                    "config.json says `{new}` {new_value} and, in the old spelling, `{old}` {old_value}; `{new}` is used"
                )
            }
            Warning::FieldIgnored { field, value, reason } => {
                write!(f, "config.json: `{field}` {value} is ignored: {reason}")
            }
            Warning::UnexpectedTensor { name, file } => {
                write!(f, "{file}: tensor `{name}` has no place in this model and is ignored")
            }
            Warning::TiedHeadStored => {
                write!(
                    f,
                    "`lm_head.weight` is stored, but config.json ties the head to the embeddings; the stored head is ignored"
                )
            }
            Warning::TokenOutsideVocabulary { field, token, vocab_size } => {
                write!(f, "`{field}` names token {token}, outside the vocabulary of {vocab_size}")
            }
        }
    }
}
