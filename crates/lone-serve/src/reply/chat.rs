//! Chat completions, whole and in chunks.

use serde::Serialize;
use utoipa::ToSchema;

use super::{ChatLogprobs, Timings, Usage};
use crate::identity::Identity;

/// A whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatCompletion {
    id: String,
    /// `chat.completion`
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: String,
    choices: Vec<ChatChoice>,
    usage: Usage,
    timings: Timings,
}

/// One of the answers that were asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatChoice {
    pub(crate) index: usize,
    pub(crate) message: ChatMessage,
    pub(crate) logprobs: Option<ChatLogprobs>,
    /// `stop`, `length` or `tool_calls`.
    pub(crate) finish_reason: &'static str,
}

/// What the model says.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ChatMessage {
    /// `assistant`
    pub(crate) role: &'static str,
    /// Absent where there are only calls.
    pub(crate) content: Option<String>,
    #[schema(value_type = Option<String>)]
    pub(crate) refusal: Option<()>,
    /// What it thought before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<ToolCallDelta>,
}

/// A piece of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatChunk {
    id: String,
    /// `chat.completion.chunk`
    object: &'static str,
    created: u64,
    model: String,
    system_fingerprint: String,
    choices: Vec<ChunkChoice>,
    /// In the last chunk or in all, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// In the last chunk, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<Timings>,
}

/// A piece of one of the answers that were asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkChoice {
    pub(crate) index: usize,
    pub(crate) delta: Delta,
    pub(crate) logprobs: Option<ChatLogprobs>,
    pub(crate) finish_reason: Option<&'static str>,
}

/// What is new.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<ToolCallDelta>,
}

/// A call of a tool, always whole.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolCallDelta {
    /// Which of the answer's calls it is; only in chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<usize>,
    pub(crate) id: String,
    /// `function`
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) function: FunctionCall,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FunctionCall {
    pub(crate) name: String,
    /// A JSON object, as text.
    pub(crate) arguments: String,
}

impl ChatCompletion {
    pub(crate) fn new(identity: Identity, choices: Vec<ChatChoice>, usage: Usage, timings: Timings) -> Self {
        let Identity { id, created, model, fingerprint } = identity;
        let object = "chat.completion";
        ChatCompletion {
            id,
            object,
            created,
            model,
            system_fingerprint: fingerprint,
            choices,
            usage,
            timings,
        }
    }
}

impl ChatChunk {
    pub(crate) fn new(identity: &Identity, choices: Vec<ChunkChoice>) -> Self {
        let Identity { id, created, model, fingerprint } = identity.clone();
        let object = "chat.completion.chunk";
        let (usage, timings) = (None, None);
        ChatChunk { id, object, created, model, system_fingerprint: fingerprint, choices, usage, timings }
    }

    /// The same, with what the answers have cost so far.
    pub(crate) fn costing(self, usage: Option<Usage>, timings: Option<Timings>) -> Self {
        ChatChunk { usage, timings, ..self }
    }
}
