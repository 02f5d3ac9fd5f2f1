//! Conversations as the text a model was trained on, by the checkpoint's own Jinja template.
//!
//! What comes out is what transformers renders, byte for byte: the same variables, filters and functions, the same
//! handling of whitespace, the same JSON. A checkpoint without a template gets plain ChatML.

mod environment;
mod generation;
mod json;
mod messages;
mod python;

use std::fmt;
use std::path::{Path, PathBuf};

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde_json::Map;

use crate::special_tokens::{SettingsError, SpecialTokens, read_settings};
use environment::Raised;

/// Our own template, for checkpoints that come without one.
const CHATML: &str = include_str!("chat/chatml.jinja");

/// A chat template that cannot be used, or a conversation it does not take.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A template is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of settings is damaged.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// `chat_template` of tokenizer_config.json is neither text nor a list of named texts.
    #[error(
        "tokenizer_config.json: `chat_template` must be a string or a list of {{name, template}}, found {found}"
    )]
    Shape {
        /// What stands there, as JSON.
        found: String,
    },
    /// The checkpoint has several templates and none is the default.
    #[error("the checkpoint's chat templates are named {}; none of them is \"default\"", names.join(", "))]
    NoDefault {
        /// The names.
        names: Vec<String>,
    },
    /// The template is not valid Jinja.
    #[error("chat template \"{name}\" of {origin}: {reason}")]
    Syntax {
        /// Where it comes from.
        origin: TemplateSource,
        /// Name of the template.
        name: String,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// The template refused the conversation by `raise_exception`: the conversation is at fault.
    #[error("the chat template refuses this conversation: {message}")]
    Refused {
        /// The template's own words.
        message: String,
    },
    /// The template failed on the conversation.
    #[error("chat template: {reason}")]
    Render {
        /// What went wrong, and where.
        reason: String,
    },
}

/// Where a template came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateSource {
    /// chat_template.jinja.
    File,
    /// `chat_template` of tokenizer_config.json.
    TokenizerConfig,
    /// The checkpoint has none; ours is used.
    BuiltIn,
}

impl fmt::Display for TemplateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TemplateSource::File => "chat_template.jinja",
            TemplateSource::TokenizerConfig => "tokenizer_config.json",
            TemplateSource::BuiltIn => "lone",
        })
    }
}

/// A conversation to render.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// The turns, each an object with `role`, `content` and what else the template knows.
    pub messages: &'a [serde_json::Value],
    /// JSON schemas of the tools the model may call.
    pub tools: Option<&'a [serde_json::Value]>,
    /// Documents to answer from, each with `title` and `text`.
    pub documents: Option<&'a [serde_json::Value]>,
    /// Whether the opening of the assistant's turn is added, so that the model answers.
    pub add_generation_prompt: bool,
    /// Variables for the template; they override the special tokens, and nothing above.
    pub variables: Option<&'a Map<String, serde_json::Value>>,
}

impl<'a> Conversation<'a> {
    /// Messages alone, with the opening of the assistant's turn.
    pub fn new(messages: &'a [serde_json::Value]) -> Conversation<'a> {
        Conversation { messages, tools: None, documents: None, add_generation_prompt: true, variables: None }
    }
}

/// The chat templates of a checkpoint.
pub struct ChatTemplate {
    environment: Environment<'static>,
    names: Vec<String>,
    special_tokens: SpecialTokens,
    source: TemplateSource,
}

const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";

impl ChatTemplate {
    /// Reads the template of a checkpoint directory: chat_template.jinja, else tokenizer_config.json's, else ours.
    ///
    /// # Errors
    /// [`ChatError`] says which template cannot be used and why.
    pub fn open(dir: &Path) -> Result<ChatTemplate, ChatError> {
        let special_tokens = SpecialTokens::open(dir)?;
        let (templates, source) = find_templates(dir)?;
        ChatTemplate::new(templates, special_tokens, source)
    }

    /// A template from its text.
    ///
    /// # Errors
    /// [`ChatError::Syntax`].
    pub fn parse(template: &str, special_tokens: SpecialTokens) -> Result<ChatTemplate, ChatError> {
        ChatTemplate::new(vec![named(DEFAULT, template)], special_tokens, TemplateSource::File)
    }

    fn new(
        templates: Vec<(String, String)>,
        special_tokens: SpecialTokens,
        source: TemplateSource,
    ) -> Result<ChatTemplate, ChatError> {
        let mut environment = environment::new();
        let mut names = Vec::new();
        for (name, template) in templates {
            environment.add_template_owned(name.clone(), generation::rewrite(&template)).map_err(
                |error| ChatError::Syntax { origin: source, name: name.clone(), reason: error.to_string() },
            )?;
            names.push(name);
        }
        Ok(ChatTemplate { environment, names, special_tokens, source })
    }

    /// Where the template came from.
    pub fn source(&self) -> TemplateSource {
        self.source
    }

    /// The conversation as text; special tokens are written out in it.
    ///
    /// # Errors
    /// [`ChatError::Refused`] where the template refuses the conversation, [`ChatError::Render`] where it fails on it.
    pub fn render(&self, conversation: &Conversation<'_>) -> Result<String, ChatError> {
        let name = self.choose(conversation.tools.is_some())?;
        let template = self
            .environment
            .get_template(name)
            .map_err(|error| ChatError::Render { reason: error.to_string() })?;
        template.render(self.variables(conversation)).map_err(|error| match Raised::find(&error) {
            Some(message) => ChatError::Refused { message },
            None => ChatError::Render { reason: error.to_string() },
        })
    }

    /// The template for tools where there are tools and such a template, else the default one.
    fn choose(&self, with_tools: bool) -> Result<&str, ChatError> {
        let has = |wanted| self.names.iter().any(|name| name == wanted);
        match with_tools {
            true if has(TOOL_USE) => Ok(TOOL_USE),
            _ if has(DEFAULT) => Ok(DEFAULT),
            _ => Err(ChatError::NoDefault { names: self.names.clone() }),
        }
    }

    fn variables(&self, conversation: &Conversation<'_>) -> Value {
        let special = self.special_tokens.iter().map(|(role, token)| (role.to_owned(), Value::from(token)));
        let own = conversation.variables.into_iter().flatten();
        let own = own.map(|(name, value)| (name.clone(), Value::from(Serde(value))));
        let list = |list: Option<&[serde_json::Value]>| Value::from(list.map(Serde));
        let fixed = [
            ("messages", Value::from(Serde(messages::normalized(conversation.messages)))),
            ("tools", list(conversation.tools)),
            ("documents", list(conversation.documents)),
            ("add_generation_prompt", Value::from(conversation.add_generation_prompt)),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
        Value::from_pairs(special.chain(own).chain(fixed))
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChatTemplate { names, source, .. } = self;
        f.debug_struct("ChatTemplate").field("names", names).field("source", source).finish_non_exhaustive()
    }
}

fn named(name: &str, template: &str) -> (String, String) {
    (name.to_owned(), template.to_owned())
}

/// Named templates of a directory, and where they come from.
fn find_templates(dir: &Path) -> Result<(Vec<(String, String)>, TemplateSource), ChatError> {
    let path = dir.join("chat_template.jinja");
    match crate::regular_file::read_to_string(&path) {
        Ok(template) => return Ok((vec![(DEFAULT.to_owned(), template)], TemplateSource::File)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(ChatError::Read { path, source }),
    }
    let settings = read_settings(&dir.join("tokenizer_config.json"))?;
    match settings.as_ref().and_then(|settings| settings.get("chat_template")) {
        None | Some(serde_json::Value::Null) => Ok((vec![named(DEFAULT, CHATML)], TemplateSource::BuiltIn)),
        Some(value) => match templates_of(value) {
            Some(templates) => Ok((templates, TemplateSource::TokenizerConfig)),
            None => Err(ChatError::Shape { found: value.to_string() }),
        },
    }
}

/// One template, or a list of objects with `name` and `template`.
fn templates_of(value: &serde_json::Value) -> Option<Vec<(String, String)>> {
    if let Some(template) = value.as_str() {
        return Some(vec![named(DEFAULT, template)]);
    }
    let entries = value.as_array()?.iter();
    entries.map(|entry| Some(named(entry.get("name")?.as_str()?, entry.get("template")?.as_str()?))).collect()
}

#[cfg(test)]
mod tests;
