//! Log probabilities, in the shapes of both kinds of completions.

use lone_engine::Logprobs;
use lone_lfm::{DecodeStream, SpecialText, Tokenizer};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Those of a chat completion.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct ChatLogprobs {
    /// One entry a token, without the token that ended the answer.
    pub(crate) content: Vec<TokenLogprob>,
    #[schema(value_type = Option<Object>)]
    refusal: Option<()>,
}

/// A token at its place.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TokenLogprob {
    #[serde(flatten)]
    token: LikelyToken,
    /// The likeliest tokens there.
    top_logprobs: Vec<LikelyToken>,
}

/// A token and how likely the model found it.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct LikelyToken {
    /// U+FFFD stands for bytes that are no whole character.
    token: String,
    logprob: f64,
    bytes: Vec<u8>,
}

impl LikelyToken {
    fn new(tokenizer: &Tokenizer, id: u32, logprob: f32) -> Self {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        LikelyToken { token: String::from_utf8_lossy(&bytes).into_owned(), logprob: logprob.into(), bytes }
    }
}

/// Token `id` and what the engine said of it.
pub(crate) fn token_logprob(tokenizer: &Tokenizer, id: u32, logprobs: &Logprobs) -> TokenLogprob {
    let top = logprobs.top.iter().map(|&(id, logprob)| LikelyToken::new(tokenizer, id, logprob));
    TokenLogprob { token: LikelyToken::new(tokenizer, id, logprobs.chosen), top_logprobs: top.collect() }
}

impl ChatLogprobs {
    pub(crate) fn new(content: Vec<TokenLogprob>) -> Self {
        ChatLogprobs { content, refusal: None }
    }
}

/// Those of a completion: columns, one entry a token.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct CompletionLogprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<f64>,
    /// Token to logarithm, the chosen one included.
    #[schema(value_type = Vec<Object>)]
    top_logprobs: Vec<Map<String, Value>>,
    /// Characters of the answer before each token.
    text_offset: Vec<usize>,
}

impl CompletionLogprobs {
    /// Appends token `id`, in front of which `offset` characters stand.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32, logprobs: &Logprobs, offset: usize) {
        let token = LikelyToken::new(tokenizer, id, logprobs.chosen);
        let mut top = Map::new();
        for &(id, logprob) in &logprobs.top {
            let likely = LikelyToken::new(tokenizer, id, logprob);
            top.entry(likely.token).or_insert(likely.logprob.into());
        }
        // Several tokens may be written the same: of those the likeliest counts, but for the one that was chosen.
        top.insert(token.token.clone(), token.logprob.into());
        self.tokens.push(token.token);
        self.token_logprobs.push(token.logprob);
        self.top_logprobs.push(top);
        self.text_offset.push(offset);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Appends those of later tokens.
    pub(crate) fn extend(&mut self, later: CompletionLogprobs) {
        self.tokens.extend(later.tokens);
        self.token_logprobs.extend(later.token_logprobs);
        self.top_logprobs.extend(later.top_logprobs);
        self.text_offset.extend(later.text_offset);
    }
}

/// Counts the characters that tokens come to.
#[derive(Debug)]
pub(crate) struct Offsets {
    stream: DecodeStream,
    characters: usize,
}

impl Default for Offsets {
    fn default() -> Self {
        Offsets { stream: DecodeStream::new(SpecialText::Keep), characters: 0 }
    }
}

impl Offsets {
    /// Characters before token `id`, which is counted from here on.
    pub(crate) fn pass(&mut self, tokenizer: &Tokenizer, id: u32) -> usize {
        let before = self.characters;
        self.characters += self.stream.push(tokenizer, id).chars().count();
        before
    }
}
