//! What can go wrong, by whose fault it is: the bundle's, the request's, or the run's.

use std::path::PathBuf;

use lone_bundle::{BundleError, Role};
use lone_lfm::{ChatError, TokenizerError};
use lone_mil::BackendError;

/// Why a bundle could not be loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum LoadError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("{package}: {source}")]
    Backend { package: String, source: BackendError },
    #[error("{graph}: function `{function}`: {port}: expected {expected}, found {found}")]
    Port { graph: String, function: String, port: String, expected: String, found: String },
    #[error("{graph} has no {role:?} function for {tokens} tokens at context {ctx}, and other graphs have")]
    MissingFunction { graph: String, role: Role, tokens: usize, ctx: usize },
    #[error("{graph} has no function for {asked}; it has {available}")]
    NothingToRun { graph: String, asked: String, available: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: expected {expected} bytes of embeddings, found {found}", path.display())]
    Embeddings { path: PathBuf, expected: u64, found: u64 },
    #[error(transparent)]
    Memory(#[from] RunError),
}

/// Why a prompt or its settings were refused: the asker's fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RequestError {
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("the prompt has {tokens} tokens, and the context holds {ctx}")]
    PromptTooLong { tokens: usize, ctx: usize },
    #[error(
        "{tokens} tokens need caches for {ctx}, which take {bytes} bytes, and {budget_bytes} are allowed"
    )]
    OverBudget { tokens: usize, ctx: usize, bytes: u64, budget_bytes: u64 },
    #[error("{tokens} tokens do not fit a pass of {most}")]
    PassTooLong { tokens: usize, most: usize },
    #[error("token {index} is {id}, and the vocabulary has {vocab_size} entries")]
    UnknownToken { index: usize, id: u32, vocab_size: usize },
    #[error("{field} is {found}, and must be {allowed}")]
    Setting { field: &'static str, found: String, allowed: &'static str },
    #[error("speculation needs a verify function, and there is none")]
    NoVerify,
    #[error("a stop string is empty")]
    EmptyStop,
    #[error("stop strings need a tokenizer, and the bundle has none")]
    StopWithoutTokenizer,
}

/// Why a pass failed: not the asker's fault.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RunError {
    #[error("{package}: {source}")]
    Backend { package: String, source: BackendError },
    #[error("cannot allocate {bytes} bytes")]
    Memory { bytes: u64 },
    #[error("cannot lock a session's caches, {bytes} bytes, in memory: {source}")]
    Wire { bytes: u64, source: std::io::Error },
    #[error("the model returned {found} among its logits")]
    Logits { found: &'static str },
    #[error("the answer cannot go on as it must: {0}")]
    Grammar(#[from] crate::GrammarError),
}

/// Why an answer could not be had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants are what they hold")]
pub enum EngineError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Why a conversation could not become a prompt.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants are what they hold")]
pub enum DialogueError {
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}
