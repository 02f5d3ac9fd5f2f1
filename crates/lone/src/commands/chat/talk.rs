//! The conversation itself: what is said, and what the commands do to it.

use std::sync::Arc;

use lone_engine::{
    Asked, Dialogue, FinishReason, Generation, Proposers, Request, RequestError, Runtime, Session,
    SessionOptions,
};
use lone_lfm::{ChatTemplate, Tokenizer};

use super::command::{COMMANDS, Command};
use super::report::{Totals, TurnReport};
use super::save;
use super::settings::Settings;
use crate::args::MOST_CONTEXT;
use crate::commands::Context;
use crate::commands::answer::Answer;
use crate::energy::Metering;
use crate::failure::{Failure, UserError};
use crate::quantity::counted;

const LABEL: &str = "lone> ";

/// The most characters shown of a turn that is taken back.
const MOST_SHOWN: usize = 60;

/// A loaded model in conversation.
pub(super) struct Talk<'a> {
    pub(super) context: &'a Context,
    pub(super) runtime: Runtime,
    pub(super) session: Session,
    pub(super) options: SessionOptions,
    /// Who guess tokens, if anybody does.
    pub(super) proposers: Option<Proposers>,
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) template: ChatTemplate,
    pub(super) dialogue: Dialogue,
    pub(super) settings: Settings,
    pub(super) totals: Totals,
    pub(super) metering: Metering,
    pub(super) is_json: bool,
    /// Whether somebody sits there.
    pub(super) is_interactive: bool,
}

impl Talk<'_> {
    /// Says hello to whoever sits there.
    ///
    /// # Errors
    /// If the bundle cannot check the guesses that were asked for.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.equip()?;
        if self.is_interactive {
            let (name, ctx) = (&self.runtime.facts().name, self.session.ctx());
            self.context.ui.note(format_args!("{name}, context of {ctx} tokens. /help lists the commands"));
        }
        Ok(())
    }

    /// Gives the session somebody who guesses, if that was asked for.
    fn equip(&mut self) -> Result<(), RequestError> {
        self.session.set_proposer(&self.runtime, self.proposers.as_ref().map(Proposers::make))
    }

    /// Has the model answer `text`.
    ///
    /// # Errors
    /// [`Failure::User`] for a turn that the template or the context does not take; the conversation is then as before.
    pub(super) fn say(&mut self, text: String) -> Result<(), Failure> {
        let asked = self.dialogue.ask(&self.template, &self.tokenizer, text)?;
        self.check_length(&asked)?;
        let stop_tokens = self.runtime.facts().eos_token_ids.clone();
        let mut sampling = self.settings.sampling();
        sampling.seed = sampling.seed.map(|seed| seed.wrapping_add(self.dialogue.answers()));
        let request = Request {
            prompt: asked.tokens().to_vec(),
            sampling,
            max_new_tokens: self.settings.max_new_tokens(),
            stop_tokens: stop_tokens.clone(),
            ..Request::default()
        };
        let tokenizer = Some(Arc::clone(&self.tokenizer));
        let mut generation = Generation::begin(&self.runtime, &mut self.session, tokenizer, request)?;
        let text = self.stream(&mut generation)?;
        self.totals.add(generation.stats());
        if !generation.token_ids().is_empty() {
            self.dialogue.record(asked, &self.tokenizer, generation.token_ids(), &stop_tokens);
        }
        self.report(&generation, text)
    }

    /// Lets the answer run, shows it as it comes, and returns all of it.
    fn stream(&mut self, generation: &mut Generation) -> Result<String, Failure> {
        let ui = &self.context.ui;
        if self.is_interactive && !self.is_json {
            ui.label(LABEL)?;
        }
        let mut answer = Answer::new(self.context, !self.is_json, true);
        answer.take(generation, &mut self.runtime, &mut self.session, &mut self.metering)?;
        let text = answer.text().unwrap_or_default();
        if text.is_empty() && !self.is_json {
            ui.write("\n")?;
        }
        Ok(text)
    }

    fn report(&self, generation: &Generation, text: String) -> Result<(), Failure> {
        let ui = &self.context.ui;
        let energy = self.metering.phases();
        let report = TurnReport::new(generation, text, &self.session, self.proposers.is_some(), energy);
        if self.is_json {
            return ui.json_line(&report);
        }
        if let Some(ending) = self.ending(generation) {
            ui.aside(ending);
        }
        report.lines().iter().for_each(|line| ui.aside(line));
        Ok(())
    }

    /// What to say of an answer that did not come to its own end.
    fn ending(&self, generation: &Generation) -> Option<String> {
        let said = generation.token_ids().len();
        match generation.finish_reason() {
            Some(FinishReason::Cancelled) => Some(format!("stopped after {}", counted(said, "token"))),
            Some(FinishReason::Length) if said >= self.settings.max_new_tokens() => {
                Some(format!("cut off at {}, as max-new-tokens says", counted(said, "token")))
            }
            Some(FinishReason::Length) => {
                Some(format!("cut off: the context of {} tokens is full", self.session.ctx()))
            }
            _ => None,
        }
    }

    fn check_length(&self, asked: &Asked) -> Result<(), Failure> {
        let refusal = self.session.check_prompt(&self.runtime, asked.tokens());
        let Err(RequestError::PromptTooLong { tokens, ctx }) = refusal else { return Ok(refusal?) };
        let before = tokens - asked.new_tokens();
        Err(UserError::new(format_args!(
            "this turn does not fit: it adds {} to {before}, and the context holds {ctx}",
            counted(asked.new_tokens(), "token")
        ))
        .with_hint(self.ways_to_fit(tokens))
        .into())
    }

    /// What would make room for a prompt of `tokens` tokens.
    fn ways_to_fit(&self, tokens: usize) -> String {
        let commands = if self.dialogue.turns() > 0 { "/undo, /reset, or " } else { "" };
        if tokens <= MOST_CONTEXT {
            format!("{commands}a bundle with --ctx {} or more", tokens.next_power_of_two())
        } else {
            format!("{commands}a shorter text: no context is longer than {MOST_CONTEXT}")
        }
    }

    /// Does what a command says.
    ///
    /// # Errors
    /// As the command has it.
    pub(super) fn obey(&mut self, command: Command) -> Result<(), Failure> {
        let Context { ui, environment, .. } = self.context;
        match command {
            Command::Exit => {}
            Command::Help => help().iter().for_each(|line| ui.say(line)),
            Command::Stats => self.stats().iter().for_each(|line| ui.say(line)),
            Command::Reset => {
                self.dialogue.reset();
                self.forget();
            }
            Command::System(None) => ui.say(self.dialogue.system().unwrap_or("no system message")),
            Command::System(Some(system)) => {
                self.dialogue.set_system(system);
                self.forget();
            }
            Command::Set(None) => self.settings.lines().iter().for_each(|line| ui.say(line)),
            Command::Set(Some((name, value))) => self.settings.set(&name, &value)?,
            Command::Undo => {
                let undone = self.take_back()?;
                self.forget();
                ui.note(format_args!("taken back: {}", first_line(&undone)));
            }
            Command::Retry => return self.retry(),
            Command::Save(path) => {
                let path = environment.expanded(path);
                self.forget();
                save::save(&path, &self.runtime, &self.session, &self.dialogue)?;
                ui.note(format_args!("saved {} to {}", self.held(), path.display()));
            }
            Command::Load(path) => {
                let path = environment.expanded(path);
                (self.session, self.dialogue) = save::load(&path, &self.runtime, &self.options)?;
                self.equip()?;
                ui.note(format_args!("loaded {} from {}", self.held(), path.display()));
            }
        }
        Ok(())
    }

    /// Has the last turn answered again; the old answer stays if nothing comes of that.
    fn retry(&mut self) -> Result<(), Failure> {
        let before = self.dialogue.clone();
        let text = self.take_back()?;
        let answers = before.answers();
        let outcome = self.say(text);
        if self.dialogue.answers() == answers {
            self.dialogue = before;
        }
        outcome
    }

    fn take_back(&mut self) -> Result<String, UserError> {
        self.dialogue.undo().ok_or_else(|| UserError::new("nothing has been said yet"))
    }

    /// Has the session hold nothing that is no part of the conversation, so that nothing else can be saved.
    fn forget(&mut self) {
        self.session.forget_all_but(self.dialogue.tokens());
    }

    fn stats(&self) -> Vec<String> {
        self.totals.lines(&self.session, self.proposers.is_some())
    }

    fn held(&self) -> String {
        let tokens = counted(self.session.position(), "token");
        format!("{} of {tokens}", counted(self.dialogue.turns(), "turn"))
    }
}

fn help() -> Vec<String> {
    let commands =
        COMMANDS.iter().map(|(name, rest, help)| format!("{:<28} {help}", format!("{name} {rest}")));
    commands
        .chain([
            "\"\"\"                          begins and ends a text of several lines; Alt-Enter begins another line".to_owned(),
            "//…                          says a text that begins with a slash".to_owned(),
            "Ctrl-C                       stops an answer".to_owned(),
        ])
        .collect()
}

/// The first line of `text`, or its beginning if that is long.
fn first_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(MOST_SHOWN).collect();
    let rest = if shown.len() < text.trim_end().len() { " …" } else { "" };
    format!("{shown}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_turn_the_beginning_is_shown() {
        assert_eq!(first_line("a\n"), "a");
        assert_eq!(first_line("a\nb"), "a …");
        assert_eq!(first_line(&"é".repeat(MOST_SHOWN)), "é".repeat(MOST_SHOWN));
        assert_eq!(first_line(&"é".repeat(MOST_SHOWN + 1)), format!("{} …", "é".repeat(MOST_SHOWN)));
    }
}
