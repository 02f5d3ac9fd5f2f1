//! What answers cost.

use lone_energy::EnergyReport;
use serde::Serialize;
use utoipa::ToSchema;

/// Tokens read and written.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// Of the prompts; of one that several answers share, once.
    pub(crate) prompt_tokens: usize,
    /// Of the answers, the tokens that ended them included.
    pub(crate) completion_tokens: usize,
    pub(crate) total_tokens: usize,
    pub(crate) prompt_tokens_details: PromptTokensDetails,
    pub(crate) completion_tokens_details: CompletionTokensDetails,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct PromptTokensDetails {
    /// Those that an earlier request had read already.
    pub(crate) cached_tokens: usize,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct CompletionTokensDetails {
    /// Those between `<think>` and `</think>`.
    pub(crate) reasoning_tokens: usize,
}

/// Time spent, as llama-server reports it; not in OpenAI's API. Prefill lasts until the first token is chosen.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Timings {
    /// Tokens of prompts that were there already.
    pub(crate) cache_n: usize,
    /// Tokens of prompts that were read.
    pub(crate) prompt_n: usize,
    pub(crate) prompt_ms: f64,
    pub(crate) prompt_per_token_ms: f64,
    pub(crate) prompt_per_second: f64,
    /// Tokens of answers but for the first, which prefill pays for.
    pub(crate) predicted_n: usize,
    pub(crate) predicted_ms: f64,
    pub(crate) predicted_per_token_ms: f64,
    pub(crate) predicted_per_second: f64,
    /// Passes those tokens took, and how many each came to; fewer and more where tokens are guessed.
    pub(crate) predicted_passes: usize,
    pub(crate) predicted_per_pass: f64,
    /// Tokens guessed and checked.
    pub(crate) draft_n: usize,
    /// Those of them the answers took.
    pub(crate) draft_n_accepted: usize,
    /// Those of the passes that checked any.
    pub(crate) draft_passes: usize,
    /// What the whole machine used from the request to the end of its answers, other requests included. Absent where it
    /// has no meter that may be read, or that was too short for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) energy: Option<EnergyReport>,
}
