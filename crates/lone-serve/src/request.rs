//! Requests as they come in: every field taken, checked and named when it is wrong.

mod chat;
mod choosing;
mod completion;
mod fields;
mod format;
mod messages;
mod tools;

pub(crate) use chat::ChatRequest;
pub(crate) use choosing::{Choosing, within};
pub(crate) use completion::{CompletionRequest, Prompt};
pub(crate) use fields::{Fields, typed};
pub(crate) use format::Format;
pub(crate) use messages::{Reading, check_message, messages, text_of};
pub(crate) use tools::{Function, TemplateTool, ToolChoice, Tools};

/// Fields of OpenAI's that make no difference here.
pub(crate) const WITHOUT_EFFECT: [&str; 6] =
    ["user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"];
