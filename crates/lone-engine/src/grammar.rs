//! Answers that cannot be anything else: JSON of a schema, or calls of tools.
//!
//! A [`GrammarCompiler`] knows the vocabulary; a [`Grammar`] knows which tokens may come next in one answer, and rules
//! the others out before a token is chosen. What ends complete is valid; what the context or a limit cuts off is not.

mod calls;
mod limits;
mod numbers;
mod one_of;
mod pattern;
mod reader;
mod references;
mod schema;
mod vocabulary;
mod workshop;

use std::fmt;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use lone_lfm::Tokenizer;
use serde_json::{Map, Value, json};

use crate::ToolMarks;
use calls::{ReadTool, writing};
use limits::Tally;
use schema::Schema;
use workshop::Workshop;

/// Symbols of a grammar: what whoever sends schemas may have the engine hold and look through.
const MOST_SYMBOLS: usize = 100_000;
/// States of a grammar's lexer, each of one or two kilobytes.
const MOST_LEXER_STATES: usize = 20_000;

/// The keyword by which llguidance would take settings from a schema, such as to be lenient.
const SETTINGS: &str = "x-guidance";

/// A schema no grammar can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be followed: {reason}")]
pub struct GrammarError {
    /// What is not supported, or wrong with it.
    pub reason: String,
    /// Whether it may be followed a little later: it was not looked at.
    pub is_for_now: bool,
}

/// A tool that is to be called.
#[derive(Debug, Clone)]
pub struct CallSchema<'a> {
    /// Its name.
    pub name: &'a str,
    /// A JSON schema of its arguments; it takes none if that is absent.
    pub parameters: Option<&'a Map<String, Value>>,
}

/// Makes grammars over one vocabulary.
pub struct GrammarCompiler {
    factory: Arc<ParserFactory>,
    workshop: Workshop,
}

impl GrammarCompiler {
    /// A compiler for a model of `vocab_size` tokens, whose answers end with any of `stop_tokens`.
    ///
    /// # Errors
    /// [`GrammarError`] if there are no stop tokens, or the vocabulary cannot be used.
    pub fn new(tokenizer: &Tokenizer, vocab_size: usize, stop_tokens: &[u32]) -> Result<Self, GrammarError> {
        let vocabulary = vocabulary::environment(tokenizer, vocab_size, stop_tokens)?;
        let mut factory = ParserFactory::new_simple(&vocabulary).map_err(refuse)?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        limits.max_grammar_size = MOST_SYMBOLS;
        limits.max_lexer_states = MOST_LEXER_STATES;
        Ok(GrammarCompiler { factory: Arc::new(factory), workshop: Workshop::default() })
    }

    /// JSON that `schema` allows.
    ///
    /// # Errors
    /// [`GrammarError`] for a schema that is wrong, or has keywords that cannot be followed.
    pub fn json(&self, schema: &Value) -> Result<Grammar, GrammarError> {
        let schema = schema.clone();
        self.compile(move || Ok(TopLevelGrammar::from_json_schema(compact(&schema, &mut Tally::default())?)))
    }

    /// A JSON object.
    ///
    /// # Errors
    /// As [`GrammarCompiler::json`], which no vocabulary that can write JSON gives rise to.
    pub fn json_object(&self) -> Result<Grammar, GrammarError> {
        self.json(&json!({"type": "object"}))
    }

    /// Calls of `tools` between `marks`: one, or several if `many`; or instead, if there is a schema, JSON of it.
    ///
    /// # Errors
    /// As [`GrammarCompiler::json`].
    pub fn calls(
        &self,
        marks: &ToolMarks,
        tools: &[CallSchema<'_>],
        many: bool,
        or_json: Option<&Value>,
    ) -> Result<Grammar, GrammarError> {
        let (marks, or_json) = (marks.clone(), or_json.cloned());
        let tools: Vec<(String, Value)> = tools
            .iter()
            .map(|tool| (tool.name.to_owned(), tool.parameters.cloned().unwrap_or_default().into()))
            .collect();
        self.compile(move || {
            let mut tally = Tally::default();
            let read = tools.iter().map(|(name, parameters)| ReadTool::read(name, parameters, &mut tally));
            let tools: Vec<_> = read.collect::<Result<_, _>>()?;
            let or_json = or_json.map(|schema| compact(&schema, &mut tally)).transpose()?;
            let lark = calls::lark(&marks, &tools, many, or_json.as_ref(), &mut tally)?;
            Ok(TopLevelGrammar::from_lark(lark))
        })
    }

    /// Makes what `write` writes a grammar; both may take long.
    fn compile(
        &self,
        write: impl FnOnce() -> Result<TopLevelGrammar, GrammarError> + Send + 'static,
    ) -> Result<Grammar, GrammarError> {
        let factory = Arc::clone(&self.factory);
        self.workshop.run(move || {
            let mut matcher = Matcher::new(factory.create_parser(write()?));
            if let Some(reason) = matcher.get_error() {
                return Err(refuse(reason));
            }
            // A schema that leads only to itself compiles, and lets nothing begin.
            match matcher.compute_mask_or_eos() {
                Ok(_) => Ok(Grammar { matcher }),
                Err(_) => Err(refuse("there is nothing that could be said, or too much")),
            }
        })
    }
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarCompiler").finish_non_exhaustive()
    }
}

/// `schema` as llguidance takes it, for JSON on one line, with or without spaces.
fn compact(schema: &Value, tally: &mut Tally) -> Result<Value, GrammarError> {
    let mut whole = Schema::read(schema, tally)?.whole();
    whole.insert(SETTINGS.into(), writing(", ?", ": ?"));
    Ok(whole.into())
}

fn refuse(reason: impl fmt::Display) -> GrammarError {
    // The first line says it, or announces the last one; others are for whoever debugs grammars.
    let reason = reason.to_string();
    let first = reason.lines().next().unwrap_or_default();
    let last = reason.lines().last().filter(|_| first.ends_with(':')).map(str::trim).unwrap_or_default();
    let reason = format!("{first} {last}").trim_end().to_owned();
    // What llguidance says to whoever calls it, and not to whoever wrote the schema.
    let reason = if reason.contains("coerce_one_of") {
        "values may fit several of the branches of a `oneOf`: have each require a property that is another constant, \
         or use `anyOf`"
            .into()
    } else if reason.starts_with("Unable to determine if regex is empty") {
        "its patterns are too much, by themselves or together".into()
    } else if reason == "NoExtensionBias" {
        "it allows a beginning that nothing may follow".into()
    } else {
        reason
    };
    GrammarError { reason, is_for_now: false }
}

/// What may come next in one answer. A clone goes on from where this one stands.
#[derive(Clone)]
pub struct Grammar {
    matcher: Matcher,
}

impl Grammar {
    /// Rules out of `logits (V)`, by minus infinity, every token that may not come next. After the end only a token that
    /// ends the answer may.
    pub(crate) fn restrict(&mut self, logits: &mut [f32]) -> Result<(), GrammarError> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(refuse)?;
        for (words, logits) in allowed.as_slice().iter().zip(logits.chunks_mut(32)) {
            for (bit, logit) in logits.iter_mut().enumerate() {
                if words >> bit & 1 == 0 {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        Ok(())
    }

    /// Takes note that `token` was chosen, which must have been allowed.
    pub(crate) fn accept(&mut self, token: u32) -> Result<(), GrammarError> {
        if self.matcher.is_stopped() {
            return Ok(());
        }
        self.matcher.consume_token(token).map_err(refuse)
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
