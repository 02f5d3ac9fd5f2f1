//! Where a prompt comes from, and the tokens it becomes.

use std::io::{IsTerminal, Read};
use std::path::Path;

use lone_bundle::ModelFacts;
use lone_engine::raw_prompt;
use lone_lfm::{ChatTemplate, Conversation, Tokenizer};
use serde_json::json;

use crate::args::PromptArgs;
use crate::failure::{Failure, UserError};
use crate::ui::Ui;

/// What the model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// Text to continue.
    Text(String),
    /// A user's turn in a conversation.
    Chat {
        /// What the model is told first.
        system: Option<String>,
        /// What the user says.
        user: String,
    },
    /// Tokens, as they are.
    Tokens(Vec<u32>),
}

impl Prompt {
    /// Takes the prompt from the flag that gives it, or else from stdin.
    ///
    /// # Errors
    /// If it cannot be read, is not UTF-8, or is empty.
    pub(crate) fn read(args: &PromptArgs, ui: &Ui) -> Result<Self, Failure> {
        if let Some(ids) = &args.prompt_ids {
            return Ok(Prompt::Tokens(ids.clone()));
        }
        let text = match (&args.prompt, &args.prompt_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => read_file(path)?,
            (None, None) => read_stdin(ui)?,
        };
        if text.is_empty() {
            return Err(UserError::new("the prompt is empty").with_hint("--prompt TEXT").into());
        }
        Ok(if args.chat {
            Prompt::Chat { system: args.system.clone(), user: text }
        } else {
            Prompt::Text(text)
        })
    }

    /// Refuses text for a model without a tokenizer; `dir` is a checkpoint or a bundle.
    ///
    /// # Errors
    /// The refusal, with what the model, called `name`, takes instead.
    pub(crate) fn check_readable(&self, dir: &Path, name: &str) -> Result<(), UserError> {
        if matches!(self, Prompt::Tokens(_)) || dir.join("tokenizer.json").is_file() {
            return Ok(());
        }
        Err(no_tokenizer(name))
    }

    /// The tokens of the prompt for the model in the bundle at `dir`. Raw text gets the beginning-of-text token in
    /// front unless it starts with it; what a template renders gets nothing added.
    ///
    /// # Errors
    /// If there is no tokenizer, or the template refuses the conversation.
    pub(crate) fn tokens(
        &self,
        tokenizer: Option<&Tokenizer>,
        dir: &Path,
        facts: &ModelFacts,
    ) -> Result<Vec<u32>, Failure> {
        let text = match self {
            Prompt::Tokens(ids) => return Ok(ids.clone()),
            Prompt::Text(text) => text.clone(),
            Prompt::Chat { system, user } => render(dir, system.as_deref(), user)?,
        };
        let tokens = tokenizer.ok_or_else(|| no_tokenizer(&facts.name))?.encode(&text)?;
        Ok(match self {
            Prompt::Text(_) => raw_prompt(facts, tokens),
            Prompt::Chat { .. } | Prompt::Tokens(_) => tokens,
        })
    }
}

fn no_tokenizer(model: &str) -> UserError {
    UserError::new(format_args!("{model} has no tokenizer, so it cannot read text"))
        .with_hint("--prompt-ids 1,5,7 gives it tokens")
}

fn render(dir: &Path, system: Option<&str>, user: &str) -> Result<String, Failure> {
    let template = ChatTemplate::open(dir)?;
    let system = system.map(|text| json!({"role": "system", "content": text}));
    let user = json!({"role": "user", "content": user});
    let messages: Vec<_> = system.into_iter().chain([user]).collect();
    Ok(template.render(&Conversation::new(&messages))?)
}

fn read_file(path: &Path) -> Result<String, UserError> {
    let bytes = std::fs::read(path)
        .map_err(|error| UserError::new(format_args!("cannot read {}: {error}", path.display())))?;
    text_of(bytes, &path.display().to_string())
}

fn read_stdin(ui: &Ui) -> Result<String, UserError> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        ui.note("reading the prompt; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    stdin
        .read_to_end(&mut bytes)
        .map_err(|error| UserError::new(format_args!("cannot read the prompt from stdin: {error}")))?;
    text_of(bytes, "stdin")
}

/// The text of a file, without the line break that editors and `echo` put at its end.
fn text_of(bytes: Vec<u8>, place: &str) -> Result<String, UserError> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        UserError::new(format_args!("the prompt in {place} is not UTF-8: see byte {at}"))
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_of_a_file_does_not_count() {
        let text = |bytes: &str| text_of(bytes.into(), "x").unwrap();
        assert_eq!(text("a\nb\n"), "a\nb");
        assert_eq!(text("a\r\n"), "a");
        assert_eq!(text("a\n\n"), "a\n");
        assert_eq!(text("a"), "a");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_place() {
        let error = text_of(vec![b'a', 0xff], "stdin").unwrap_err();
        assert_eq!(error.message, "the prompt in stdin is not UTF-8: see byte 1");
    }
}
