//! Completions, whole and in chunks, which have the same shape.

use serde::Serialize;
use utoipa::ToSchema;

use super::{CompletionLogprobs, Timings, Usage};
use crate::identity::Identity;

/// Answers, or pieces of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Completion {
    id: String,
    /// `text_completion`
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: String,
    choices: Vec<CompletionChoice>,
    /// Of a stream in the last chunk or in all, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// Of a stream in the last chunk, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<Timings>,
}

/// One answer, or a piece of it. Those to the first prompt come first.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct CompletionChoice {
    pub(crate) index: usize,
    pub(crate) text: String,
    pub(crate) logprobs: Option<CompletionLogprobs>,
    /// `stop` or `length`.
    pub(crate) finish_reason: Option<&'static str>,
}

impl Completion {
    pub(crate) fn new(identity: &Identity, choices: Vec<CompletionChoice>) -> Self {
        let Identity { id, created, model, fingerprint } = identity.clone();
        let object = "text_completion";
        let (usage, timings) = (None, None);
        Completion { id, object, created, model, system_fingerprint: fingerprint, choices, usage, timings }
    }

    /// The same, with what it cost.
    pub(crate) fn costing(self, usage: Option<Usage>, timings: Option<Timings>) -> Self {
        Completion { usage, timings, ..self }
    }
}
