//! What is sent back, in OpenAI's shapes.

mod chat;
mod completion;
mod logprobs;
mod usage;

pub(crate) use chat::{
    ChatChoice, ChatChunk, ChatCompletion, ChatMessage, ChunkChoice, Delta, FunctionCall, ToolCallDelta,
};
pub(crate) use completion::{Completion, CompletionChoice};
pub(crate) use logprobs::{ChatLogprobs, CompletionLogprobs, Offsets, TokenLogprob, token_logprob};
pub(crate) use usage::{CompletionTokensDetails, PromptTokensDetails, Timings, Usage};
