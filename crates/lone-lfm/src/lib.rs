//! Liquid AI's LFM2, LFM2.5 and LFM3 text models, as files on disk describe them.
//!
//! [`Config`] is config.json read and validated once; [`Checkpoint`] the weights behind it, mapped and never copied.
//! [`Reference`] is the f32 forward pass over it, the truth that faster backends are measured against. Nothing here
//! knows Core ML.
//!
//! Letters used throughout: D hidden size, F feed-forward width, H query heads, G key/value heads, d head dimension,
//! K convolution taps, V vocabulary, T tokens. Linear weights are stored `(out, in)`.

pub mod chat;
pub mod checkpoint;
pub mod config;
pub mod reference;
pub mod regular_file;
pub mod rope;
pub mod special_tokens;
pub mod tokenizer;
mod warning;

pub use chat::{ChatError, ChatTemplate, Conversation};
pub use checkpoint::{Checkpoint, CheckpointError, Tensor};
pub use config::{Arch, Config, ConfigError, LayerKind};
pub use reference::{Passage, Reference, ReferenceError, Stage, Substitute};
pub use rope::{Rope, RopeTables};
pub use special_tokens::SpecialTokens;
pub use tokenizer::{DecodeStream, SpecialText, Tokenizer, TokenizerError};
pub use warning::Warning;
