//! `POST /v1/responses`, as it comes in: turned into the chat request that asks the same.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::input::messages_of;
use crate::error::ApiError;
use crate::request::{ChatRequest, Choosing, Fields, Format, Tools, WITHOUT_EFFECT, within};

/// What is asked.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ResponsesRequest {
    /// One that `/v1/models` lists; the model served when absent.
    pub(crate) model: Option<String>,
    /// A text, or items: messages, calls and their outputs.
    #[schema(value_type = Value)]
    pub(crate) input: Value,
    /// What the model is told first.
    pub(crate) instructions: Option<String>,
    /// Most tokens of the answer.
    #[schema(minimum = 1)]
    pub(crate) max_output_tokens: Option<u32>,
    /// 0 takes the likeliest token.
    #[schema(minimum = 0, maximum = 2)]
    pub(crate) temperature: Option<f32>,
    /// Among the likeliest tokens that together have this probability.
    #[schema(minimum = 0, maximum = 1)]
    pub(crate) top_p: Option<f32>,
    /// Whether the answer comes as server-sent events.
    pub(crate) stream: Option<bool>,
    /// `effort` is given to the chat template.
    #[schema(value_type = Option<Object>)]
    pub(crate) reasoning: Option<Map<String, Value>>,
    /// `format` is that of the answer: text, `json_object`, or a `json_schema` that the answer then follows.
    #[schema(value_type = Option<Object>)]
    pub(crate) text: Format,
    #[serde(flatten)]
    pub(crate) tools: Option<Tools>,
}

impl ResponsesRequest {
    /// Takes all fields and refuses what is left.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, ApiError> {
        let request = ResponsesRequest {
            model: fields.take("model")?,
            input: fields.require("input")?,
            instructions: fields.take("instructions")?,
            max_output_tokens: fields.take("max_output_tokens")?,
            temperature: fields.take("temperature")?,
            top_p: fields.take("top_p")?,
            stream: fields.take("stream")?,
            reasoning: fields.take("reasoning")?,
            text: text(&mut fields)?,
            tools: Tools::take(&mut fields, false)?,
        };
        fields.only("truncation", &[json!("disabled")])?;
        fields.only("service_tier", &[json!("auto"), json!("default")])?;
        fields.only("background", &[json!(false)])?;
        fields.only("include", &[json!([])])?;
        fields.only("top_logprobs", &[json!(0)])?;
        fields.ignore(&WITHOUT_EFFECT);
        fields.finish()?;
        within("max_output_tokens", request.max_output_tokens, 1..=u32::MAX)?;
        within("temperature", request.temperature, 0.0..=2.0)?;
        within("top_p", request.top_p, 0.0..=1.0)?;
        Ok(request)
    }

    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// The chat request that asks the same.
    pub(crate) fn as_chat(&self) -> Result<ChatRequest, ApiError> {
        let mut messages = Vec::new();
        if let Some(instructions) = &self.instructions {
            messages.push(json!({"role": "system", "content": instructions}));
        }
        messages.extend(messages_of(&self.input)?);
        let mut reasoning = Fields::from(self.reasoning.clone().unwrap_or_default());
        let at = |error: ApiError| error.within("reasoning");
        let reasoning_effort = reasoning.take("effort").map_err(at)?;
        reasoning.ignore(&["summary"]);
        reasoning.finish().map_err(at)?;
        let choosing = Choosing { temperature: self.temperature, top_p: self.top_p, ..Choosing::default() };
        Ok(ChatRequest {
            model: self.model.clone(),
            messages,
            max_completion_tokens: self.max_output_tokens,
            max_tokens: None,
            logprobs: None,
            top_logprobs: None,
            chat_template_kwargs: None,
            reasoning_effort,
            choosing,
            tools: self.tools.clone(),
            response_format: self.text.clone(),
        })
    }
}

fn text(fields: &mut Fields) -> Result<Format, ApiError> {
    let mut text = Fields::from(fields.take::<Map<String, Value>>("text")?.unwrap_or_default());
    let at = |error: ApiError| error.within("text");
    let format = Format::take(&mut text, "format", false).map_err(at)?;
    text.finish().map_err(at)?;
    Ok(format.within("text"))
}
