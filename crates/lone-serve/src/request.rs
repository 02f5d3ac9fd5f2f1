//! Requests as they come in: every field taken, checked and named when it is wrong.

mod body;
mod chat;
mod choosing;
mod completion;
mod fields;
mod format;
mod messages;
mod tools;

use serde_json::{Map, Value};

use crate::error::ApiError;
pub(crate) use body::Body;
pub(crate) use chat::ChatRequest;
pub(crate) use choosing::{Choosing, UsageTold, within};
pub(crate) use completion::{CompletionRequest, Prompt};
pub(crate) use fields::{Fields, typed};
pub(crate) use format::Format;
pub(crate) use messages::{Reading, check_message, messages, text_of};
pub(crate) use tools::{Function, TemplateTool, ToolChoice, Tools};

/// Fields of OpenAI's that make no difference here.
pub(crate) const WITHOUT_EFFECT: [&str; 6] =
    ["user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"];

/// Takes `chat_template_kwargs`, in which nothing may stand that the request says elsewhere.
pub(crate) fn take_variables(fields: &mut Fields) -> Result<Option<Map<String, Value>>, ApiError> {
    const NAME: &str = "chat_template_kwargs";
    let variables: Option<Map<String, Value>> = fields.take(NAME)?;
    let elsewhere = ["messages", "tools", "add_generation_prompt"];
    match elsewhere.iter().find(|name| variables.as_ref().is_some_and(|given| given.contains_key(**name))) {
        Some(name) => {
            Err(ApiError::field(format!("{NAME}.{name}"), "is not for the template alone to be told"))
        }
        None => Ok(variables),
    }
}
