//! A response and its items, in OpenAI's shapes.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::reply::{Timings, Usage};

/// A response, complete or not.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ResponseObject {
    pub(crate) id: String,
    /// `response`
    pub(crate) object: &'static str,
    pub(crate) created_at: u64,
    /// `in_progress`, `completed`, `incomplete` or `failed`.
    pub(crate) status: &'static str,
    #[schema(value_type = Option<Object>)]
    pub(crate) error: Option<Value>,
    /// Why it is not complete.
    #[schema(value_type = Option<Object>)]
    pub(crate) incomplete_details: Option<Value>,
    pub(crate) instructions: Option<String>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) model: String,
    pub(crate) output: Vec<OutputItem>,
    pub(crate) parallel_tool_calls: bool,
    pub(crate) previous_response_id: Option<String>,
    /// Always false: nothing is kept.
    pub(crate) store: bool,
    pub(crate) temperature: f64,
    pub(crate) top_p: f64,
    #[schema(value_type = Value)]
    pub(crate) tool_choice: Value,
    #[schema(value_type = Vec<Object>)]
    pub(crate) tools: Vec<Value>,
    /// `disabled`
    pub(crate) truncation: &'static str,
    #[schema(value_type = Option<Object>)]
    pub(crate) usage: Option<Value>,
    /// Not in OpenAI's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timings: Option<Timings>,
}

/// Something the model made.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OutputItem {
    /// What it thought.
    Reasoning {
        id: String,
        #[schema(value_type = Vec<Object>)]
        summary: Vec<Value>,
        content: Vec<ContentPart>,
        status: &'static str,
    },
    /// What it said.
    Message {
        id: String,
        /// `assistant`
        role: &'static str,
        content: Vec<ContentPart>,
        status: &'static str,
    },
    /// A tool it calls.
    FunctionCall {
        id: String,
        call_id: String,
        name: String,
        /// A JSON object, as text.
        arguments: String,
        status: &'static str,
    },
}

/// Text.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentPart {
    /// Of a message.
    OutputText {
        text: String,
        #[schema(value_type = Vec<Object>)]
        annotations: Vec<Value>,
        #[schema(value_type = Vec<Object>)]
        logprobs: Vec<Value>,
    },
    /// Of reasoning.
    ReasoningText { text: String },
}

impl ContentPart {
    pub(crate) fn said(text: String) -> Self {
        ContentPart::OutputText { text, annotations: Vec::new(), logprobs: Vec::new() }
    }
}

impl ResponseObject {
    /// The event of this name that shows all of it.
    pub(crate) fn event(&self, kind: &str) -> Value {
        json!({"type": kind, "response": self})
    }
}

/// The count of tokens under the names responses have for it.
pub(crate) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.prompt_tokens_details.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.completion_tokens_details.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    })
}
