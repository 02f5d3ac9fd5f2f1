//! `POST /v1/completions`, as it comes in.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{Choosing, Fields, WITHOUT_EFFECT, within};
use crate::error::ApiError;

/// As in OpenAI's API.
const DEFAULT_MOST_TOKENS: u32 = 16;
/// Likeliest tokens that may be asked for at each place.
const MOST_LOGPROBS: u32 = 20;
/// Prompts one request may have.
const MOST_PROMPTS: usize = 128;

/// Texts to continue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CompletionRequest {
    /// One that `/v1/models` lists; the model served when absent.
    pub(crate) model: Option<String>,
    /// A text, several, token ids, or several lists of them.
    pub(crate) prompt: Prompt,
    /// Most tokens of the answer; 16 when absent, as in OpenAI's API.
    pub(crate) max_tokens: Option<u32>,
    /// With each token its log probability and those of so many likeliest ones.
    #[schema(minimum = 0, maximum = 20)]
    pub(crate) logprobs: Option<u32>,
    #[serde(flatten)]
    pub(crate) choosing: Choosing,
}

/// What is to be continued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a string, a list of strings, a list of token ids, or a list of such lists"
)]
pub(crate) enum Prompt {
    /// The beginning-of-text token is put in front unless it is there.
    Text(String),
    Texts(Vec<String>),
    /// Nothing is added.
    Tokens(Vec<u32>),
    TokenLists(Vec<Vec<u32>>),
}

impl CompletionRequest {
    /// Takes all fields and refuses what is left.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, ApiError> {
        let request = CompletionRequest {
            model: fields.take("model")?,
            prompt: fields.require("prompt")?,
            max_tokens: fields.take("max_tokens")?,
            logprobs: fields.take("logprobs")?,
            choosing: Choosing::take(&mut fields)?,
        };
        fields.only("echo", &[json!(false)])?;
        fields.only("suffix", &[json!("")])?;
        fields.only("best_of", &[json!(request.choosing.answers())])?;
        fields.ignore(&WITHOUT_EFFECT);
        fields.finish()?;
        within("logprobs", request.logprobs, 0..=MOST_LOGPROBS)?;
        match request.prompt.len() {
            0 => Err(ApiError::field("prompt", "is empty")),
            count if count > MOST_PROMPTS => {
                Err(ApiError::field("prompt", format!("has more than {MOST_PROMPTS} prompts")))
            }
            _ => Ok(request),
        }
    }

    pub(crate) fn most_tokens(&self) -> usize {
        self.max_tokens.unwrap_or(DEFAULT_MOST_TOKENS) as usize
    }
}

impl Prompt {
    fn len(&self) -> usize {
        match self {
            Prompt::Text(_) | Prompt::Tokens(_) => 1,
            Prompt::Texts(texts) => texts.len(),
            Prompt::TokenLists(lists) => lists.len(),
        }
    }
}
