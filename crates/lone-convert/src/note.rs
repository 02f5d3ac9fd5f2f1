//! What deserves a word to the user but is no error.

use std::fmt;

use crate::WeightPrecision;

/// A remark on a conversion; callers decide where it is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Something about the checkpoint itself.
    Checkpoint(lone_lfm::Warning),
    /// A weight that would overflow if it were scaled, and so was not.
    Unscaled {
        /// Name in the checkpoint.
        tensor: String,
    },
    /// Tables that serve fewer rows than asked for, to divide those of the matrix.
    SmallerGroups {
        /// Name in the checkpoint.
        tensor: String,
        /// Rows of the matrix, or of its slice.
        rows: usize,
        /// Rows a table asked for.
        asked: usize,
        /// Rows a table there are.
        used: usize,
    },
    /// The precisions that were chosen for matrices.
    Chosen {
        /// Matrices of each precision.
        counts: Vec<(WeightPrecision, usize)>,
        /// Mean cosine of the logits that was measured.
        cosine: f64,
        /// Whether it was measured on text that palettes were fitted to: there was not enough for both.
        is_fitted: bool,
    },
    /// Chunks have fewer layers than asked for, to stay loadable.
    FewerLayers {
        /// Layers asked for.
        asked: usize,
        /// Layers there are.
        used: usize,
        /// The most weights a package should hold.
        most_bytes: u64,
    },
    /// The context is longer than the model was made for.
    LongContext {
        /// Context of the bundle, in tokens.
        ctx: usize,
        /// Positions the checkpoint names.
        max_positions: usize,
    },
    /// The checkpoint has no tokenizer.json: the bundle takes and gives token ids only.
    NoTokenizer,
    /// The tokenizer has tokens that the model has no embedding for.
    TokensOutsideVocabulary {
        /// How many.
        count: usize,
        /// V.
        vocab_size: usize,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Checkpoint(warning) => write!(f, "{warning}"),
            Note::Chosen { counts, cosine, is_fitted } => {
                let used = counts.iter().filter(|(_, count)| *count > 0);
                let counts: Vec<String> =
                    used.map(|(precision, count)| format!("{count} in {precision}")).collect();
                let counts = counts.join(", ");
                let text = if *is_fitted {
                    "the text they were fitted to, which is too short to be divided"
                } else {
                    "text they were not fitted to"
                };
                write!(f, "matrices: {counts}; cosine of the logits {cosine:.6} on {text}")
            }
            Note::Unscaled { tensor } => write!(
                f,
                "tensor `{tensor}` times 16 does not fit fp16; it stays unscaled, and small products may be lost on the Neural Engine"
            ),
            Note::SmallerGroups { tensor, rows, asked, used } => {
                write!(f, "tables of `{tensor}` serve {used} rows each: {asked} do not divide its {rows}")
            }
            Note::FewerLayers { asked, used, most_bytes } => write!(
                f,
                "chunks have {used} layers instead of {asked}: a package holds at most {} MB of weights",
                most_bytes / 1_000_000
            ),
            Note::LongContext { ctx, max_positions } => {
                write!(
                    f,
                    "the context of {ctx} tokens is longer than the {max_positions} the model was made for"
                )
            }
            Note::NoTokenizer => {
                write!(f, "the checkpoint has no tokenizer.json; the bundle runs from token ids only")
            }
            Note::TokensOutsideVocabulary { count, vocab_size } => {
                write!(
                    f,
                    "tokenizer.json has {count} tokens outside the vocabulary of {vocab_size}; text with them cannot be run"
                )
            }
        }
    }
}

impl Note {
    /// Whether it is of something that may not be as the user thinks, and not only of what was done.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Note::Chosen { is_fitted: false, .. })
    }
}

impl From<lone_lfm::Warning> for Note {
    fn from(warning: lone_lfm::Warning) -> Self {
        Note::Checkpoint(warning)
    }
}
