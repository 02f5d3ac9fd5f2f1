//! What is asked, and what comes of it.

use lone_bundle::ModelFacts;

use crate::{Grammar, Logprobs, Sampling};

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The whole prompt, beginning with the first token of the conversation; see [`raw_prompt`].
    pub prompt: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// The answer ends with this many tokens, or where the context ends.
    pub max_new_tokens: usize,
    /// Any of these tokens ends the answer; usually [`ModelFacts::eos_token_ids`].
    pub stop_tokens: Vec<u32>,
    /// Any of these texts ends the answer and is left out of it. They need a tokenizer.
    pub stop: Vec<String>,
    /// With each token, log probabilities of it and of this many likeliest ones.
    pub logprobs: Option<usize>,
    /// What the answer must be, its stop tokens being those of the grammar's compiler.
    pub grammar: Option<Grammar>,
}

/// What happens while an answer is made, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A token was chosen. The first ends the prefill.
    Token {
        /// Its id.
        id: u32,
        /// If the request asked for them.
        logprobs: Option<Logprobs>,
    },
    /// Text that tokens up to here complete: never empty, never part of a character or of a stop string. Tokens that
    /// end the answer have none.
    Text(String),
    /// The end; nothing follows.
    Done(FinishReason),
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// A stop token or string.
    Stop,
    /// As many tokens as were asked for, or as the context holds.
    Length,
    /// Whoever asked did not want more.
    Cancelled,
}

impl FinishReason {
    /// The word for it in APIs.
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
        }
    }
}

/// The tokens of a prompt that no template made: `bos_token` in front, unless it begins with it.
pub fn raw_prompt(facts: &ModelFacts, mut tokens: Vec<u32>) -> Vec<u32> {
    if let Some(bos) = facts.bos_token_id.filter(|bos| tokens.first() != Some(bos)) {
        tokens.insert(0, bos);
    }
    tokens
}
