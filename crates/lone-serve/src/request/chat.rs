//! `POST /v1/chat/completions`, as it comes in.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{Choosing, Fields, Format, Tools, WITHOUT_EFFECT, take_variables, within};
use crate::error::ApiError;

/// Likeliest tokens that may be asked for at each place.
const MOST_TOP_LOGPROBS: u32 = 20;

/// A conversation to go on with.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ChatRequest {
    /// One that `/v1/models` lists; the model served when absent.
    pub(crate) model: Option<String>,
    /// The conversation so far.
    #[schema(value_type = Vec<Object>, min_items = 1)]
    pub(crate) messages: Vec<Value>,
    /// Most tokens of the answer; as many as the context holds when absent.
    pub(crate) max_completion_tokens: Option<u32>,
    /// The older name of `max_completion_tokens`.
    pub(crate) max_tokens: Option<u32>,
    /// Whether each token comes with its log probability.
    pub(crate) logprobs: Option<bool>,
    /// With each token, so many likeliest ones.
    #[schema(minimum = 0, maximum = 20)]
    pub(crate) top_logprobs: Option<u32>,
    /// Variables for the model's chat template. Not in OpenAI's API.
    #[schema(value_type = Option<Object>)]
    pub(crate) chat_template_kwargs: Option<Map<String, Value>>,
    /// Given to the chat template as the variable of this name.
    pub(crate) reasoning_effort: Option<String>,
    #[serde(flatten)]
    pub(crate) choosing: Choosing,
    #[serde(flatten)]
    pub(crate) tools: Option<Tools>,
    /// `text`, `json_object`, or a `json_schema` that the answer then follows.
    #[schema(value_type = Option<Object>)]
    pub(crate) response_format: Format,
}

impl ChatRequest {
    /// Takes all fields and refuses what is left.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, ApiError> {
        let request = ChatRequest {
            model: fields.take("model")?,
            messages: fields.require("messages")?,
            max_completion_tokens: fields.take("max_completion_tokens")?,
            max_tokens: fields.take("max_tokens")?,
            logprobs: fields.take("logprobs")?,
            top_logprobs: fields.take("top_logprobs")?,
            chat_template_kwargs: take_variables(&mut fields)?,
            reasoning_effort: fields.take("reasoning_effort")?,
            choosing: Choosing::take(&mut fields)?,
            tools: Tools::take(&mut fields, true)?,
            response_format: Format::take(&mut fields, "response_format", true)?,
        };
        fields.only("modalities", &[json!(["text"])])?;
        fields.only("service_tier", &[json!("auto"), json!("default")])?;
        fields.ignore(&WITHOUT_EFFECT);
        fields.finish()?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), ApiError> {
        within("top_logprobs", self.top_logprobs, 0..=MOST_TOP_LOGPROBS)?;
        if self.top_logprobs.is_some() && self.logprobs != Some(true) {
            return Err(ApiError::field("top_logprobs", "is allowed only with `logprobs`"));
        }
        match (self.max_completion_tokens, self.max_tokens) {
            (Some(0), _) => Err(ApiError::field("max_completion_tokens", "is 0, and must be at least 1")),
            (_, Some(0)) => Err(ApiError::field("max_tokens", "is 0, and must be at least 1")),
            (Some(new), Some(old)) if new != old => {
                Err(ApiError::field("max_tokens", format!("is {old}, and `max_completion_tokens` is {new}")))
            }
            _ => Ok(()),
        }
    }

    /// Most tokens of the answer, if it was said.
    pub(crate) fn most_tokens(&self) -> Option<usize> {
        self.max_completion_tokens.or(self.max_tokens).map(|tokens| tokens as usize)
    }

    /// How many likeliest tokens are reported at each place, if any are.
    pub(crate) fn logprobs(&self) -> Option<usize> {
        (self.logprobs == Some(true)).then(|| self.top_logprobs.unwrap_or(0) as usize)
    }

    /// Variables for the template.
    pub(crate) fn variables(&self) -> Map<String, Value> {
        let mut variables = self.chat_template_kwargs.clone().unwrap_or_default();
        if let Some(effort) = &self.reasoning_effort {
            variables.insert("reasoning_effort".into(), effort.as_str().into());
        }
        variables
    }
}
