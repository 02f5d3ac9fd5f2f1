//! The line editor of a terminal, with a history that outlives the conversation.

use std::path::PathBuf;
use std::{fs, io};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, ColorMode, CompletionType, Config, Helper, KeyCode, KeyEvent, Modifiers};

use super::command::COMMANDS;
use super::input::{self, Line};
use crate::commands::Context;
use crate::failure::Failure;

const PROMPT: &str = "you> ";

/// Reads what is typed.
pub(super) struct Editor {
    inner: rustyline::Editor<Assistant, DefaultHistory>,
    /// Where lines are kept; `None` if nothing can be.
    history: Option<PathBuf>,
    prompt: (&'static str, String),
}

impl Editor {
    /// An editor with the history of earlier conversations; `None` where the terminal does not allow one.
    pub(super) fn open(context: &Context) -> Option<Self> {
        let color = if context.ui.has_color() { ColorMode::Enabled } else { ColorMode::Disabled };
        let config = Config::builder().completion_type(CompletionType::List).color_mode(color).build();
        let mut inner = rustyline::Editor::with_config(config).ok()?;
        inner.set_helper(Some(Assistant));
        inner.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let history = context.environment.state_dir().map(|dir| dir.join("chat_history"));
        let mut editor = Editor { inner, history, prompt: (PROMPT, context.ui.emphasized(PROMPT)) };
        editor.recall();
        Some(editor)
    }

    /// What was typed; `None` at the end, which is Ctrl-D.
    pub(super) fn next(&mut self, context: &Context) -> Result<Option<Line>, Failure> {
        loop {
            match self.inner.readline(&self.prompt) {
                Ok(line) => {
                    self.remember(&line, context);
                    return Ok(Some(Ok(line)));
                }
                Err(ReadlineError::Interrupted) => context.ui.note("Ctrl-D or /exit ends the conversation"),
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Signal(_)) => {}
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    return Ok(Some(Err(input::no_text())));
                }
                Err(error) => return Err(Failure::user(format_args!("cannot read the terminal: {error}"))),
            }
        }
    }

    fn recall(&mut self) {
        // A history that cannot be read, or is not there yet, is an empty one.
        self.history.as_ref().map(|path| self.inner.load_history(path).ok());
    }

    /// Adds `line` to the history, and gives up on keeping it at the first failure.
    fn remember(&mut self, line: &str, context: &Context) {
        let added = self.inner.add_history_entry(line).unwrap_or(false);
        let Some(path) = self.history.take_if(|_| added) else { return };
        let directory = path.parent().map_or(Ok(()), fs::create_dir_all).map_err(ReadlineError::from);
        match directory.and_then(|()| self.inner.append_history(&path)) {
            Ok(()) => self.history = Some(path),
            Err(error) => {
                context.ui.warn(format_args!("lines typed are not kept in {}: {error}", path.display()));
            }
        }
    }
}

/// Completes commands, and sees where a text of several lines is not closed yet.
struct Assistant;

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..position];
        let names = COMMANDS.iter().map(|(name, ..)| *name);
        let fitting = names.filter(|name| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, fitting.map(str::to_owned).collect()))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if input::is_open(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}
