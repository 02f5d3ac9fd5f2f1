//! The model that is served, as far as requests need to know it: its text, its template, its limits.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lone_bundle::{Bundle, ModelFacts};
use lone_engine::{GrammarCompiler, GrammarError, RequestError, Sampling, ToolMarks, raw_prompt};
use lone_lfm::{ChatError, ChatTemplate, Conversation, Tokenizer};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::request::{Prompt, Reading};

/// A name that no template says by itself.
const PROBE: &str = "lone_probe_7f3a";

/// What requests are checked against and turned into tokens by.
#[derive(Debug)]
pub struct ServedModel {
    /// What it answers to; the first is what it is called in answers.
    pub(crate) names: Vec<String>,
    pub(crate) facts: ModelFacts,
    pub(crate) ctx: usize,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) sampling: Sampling,
    pub(crate) reading: Reading,
    pub(crate) marks: Option<ToolMarks>,
    /// Whether the template shows tools to the model.
    shows_tools: bool,
    /// Bytes of the longest token.
    longest_token: usize,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// Changes with the weights and with lone.
    pub(crate) fingerprint: String,
    /// Absent if answers cannot be constrained, for want of a token that ends them.
    grammars: Result<GrammarCompiler, GrammarError>,
    template: ChatTemplate,
}

/// A conversation's settings besides its messages.
#[derive(Debug, Default)]
pub(crate) struct Rendering<'a> {
    pub(crate) tools: Option<&'a [Value]>,
    pub(crate) variables: Option<&'a Map<String, Value>>,
    pub(crate) is_complete: bool,
}

impl ServedModel {
    /// The model of the bundle in `dir`, with answers of up to `ctx` tokens, prompt included. It answers to `names`, or
    /// to the bundle's own name if there are none.
    ///
    /// # Errors
    /// [`ChatError`] if its template cannot be used.
    pub fn open(
        dir: &Path,
        bundle: &Bundle,
        tokenizer: Arc<Tokenizer>,
        names: Vec<String>,
        ctx: usize,
    ) -> Result<Self, ChatError> {
        let template = ChatTemplate::open(dir)?;
        let facts = bundle.model.clone();
        let marks = ToolMarks::of(&tokenizer);
        let reads_calls = says_probe(
            &template,
            None,
            &json!({
                "role": "assistant", "content": "",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": PROBE, "arguments": {}}}],
            }),
        );
        let probe =
            json!({"type": "function", "function": {"name": PROBE, "parameters": {"type": "object"}}});
        let shows_tools = says_probe(&template, Some(&[probe]), &json!({"role": "assistant", "content": ""}));
        let hash = bundle.provenance.source_hash.get(..8).unwrap_or_default();
        let lengths = (0..).take(facts.vocab_size).filter_map(|id| tokenizer.token_bytes(id));
        let longest_token = lengths.map(|bytes| bytes.len()).max().unwrap_or(1).max(1);
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(ServedModel {
            names: if names.is_empty() { vec![facts.name.clone()] } else { names },
            sampling: Sampling::from(&facts.sampling),
            ctx,
            reading: Reading { written_calls: marks.clone().filter(|_| !reads_calls) },
            marks,
            shows_tools,
            longest_token,
            created: created.as_secs(),
            fingerprint: format!("lone-{}-{hash}", env!("CARGO_PKG_VERSION")),
            grammars: GrammarCompiler::new(&tokenizer, facts.vocab_size, &facts.eos_token_ids),
            tokenizer,
            template,
            facts,
        })
    }

    /// The name in answers.
    pub(crate) fn name(&self) -> &str {
        &self.names[0]
    }

    /// Refuses a model that is not this one.
    pub(crate) fn check_name(&self, asked: Option<&str>) -> Result<(), ApiError> {
        match asked {
            Some(asked) if !self.names.iter().any(|name| name == asked) => {
                Err(ApiError::unknown_model(asked, &self.names))
            }
            _ => Ok(()),
        }
    }

    /// Makes what constrains answers.
    pub(crate) fn grammars(&self) -> Result<&GrammarCompiler, ApiError> {
        self.grammars
            .as_ref()
            .map_err(|error| ApiError::request(format!("no answer can be constrained: {error}")))
    }

    /// A conversation as text, special tokens written out; with the opening of the assistant's turn unless it is
    /// complete.
    pub(crate) fn render(&self, messages: &[Value], rendering: &Rendering<'_>) -> Result<String, ApiError> {
        if rendering.tools.is_some() && !(self.shows_tools && self.marks.is_some()) {
            let problem = "cannot be shown to this model: its chat template has no place for them";
            return Err(ApiError::field("tools", problem));
        }
        let conversation = Conversation {
            tools: rendering.tools,
            variables: rendering.variables,
            add_generation_prompt: !rendering.is_complete,
            ..Conversation::new(messages)
        };
        Ok(self.template.render(&conversation)?)
    }

    /// The tokens of a text, which is part of the prompt in field `param`. One that is far too long for the context is
    /// not taken apart to find out by how much: that takes long, and no token stands for more than so many bytes.
    pub(crate) fn encode(&self, text: &str, param: &str) -> Result<Vec<u32>, ApiError> {
        let tokens = text.len().div_ceil(self.longest_token);
        match tokens > self.ctx {
            true => Err(ApiError::from(RequestError::PromptTooLong { tokens, ctx: self.ctx }).at(param)),
            false => Ok(self.tokenizer.encode(text)?),
        }
    }

    /// The tokens of each prompt, checked.
    pub(crate) fn tokens_of(&self, prompt: Prompt) -> Result<Vec<Vec<u32>>, ApiError> {
        let encode = |text: String| -> Result<Vec<u32>, ApiError> {
            Ok(raw_prompt(&self.facts, self.encode(&text, "prompt")?))
        };
        let lists: Vec<Vec<u32>> = match prompt {
            Prompt::Text(text) => vec![encode(text)?],
            Prompt::Texts(texts) => texts.into_iter().map(encode).collect::<Result<_, _>>()?,
            Prompt::Tokens(tokens) => vec![tokens],
            Prompt::TokenLists(lists) => lists,
        };
        lists.iter().try_for_each(|tokens| self.check_prompt(tokens, "prompt"))?;
        Ok(lists)
    }

    /// Refuses a prompt, which stands in field `param`, that no session could hold.
    pub(crate) fn check_prompt(&self, tokens: &[u32], param: &str) -> Result<(), ApiError> {
        let (ctx, vocab_size) = (self.ctx, self.facts.vocab_size);
        let refusal = match tokens.len() {
            0 => Some(RequestError::EmptyPrompt),
            tokens if tokens > ctx => Some(RequestError::PromptTooLong { tokens, ctx }),
            _ => {
                let index = tokens.iter().position(|&id| id as usize >= vocab_size);
                index.map(|index| RequestError::UnknownToken { index, id: tokens[index], vocab_size })
            }
        };
        refusal.map_or(Ok(()), |refusal| Err(ApiError::from(refusal).at(param)))
    }
}

/// Whether the template writes what is in `tools` or in `last`.
fn says_probe(template: &ChatTemplate, tools: Option<&[Value]>, last: &Value) -> bool {
    let messages = [json!({"role": "user", "content": "?"}), last.clone()];
    let conversation = Conversation { tools, add_generation_prompt: false, ..Conversation::new(&messages) };
    template.render(&conversation).is_ok_and(|text| text.contains(PROBE))
}
