//! The settings of a conversation: those of the flags, and what `/set` has changed since.

use clap::{CommandFactory, Parser};
use lone_bundle::SamplingDefaults;
use lone_engine::Sampling;

use crate::args::{SettingArgs, SettingLine};
use crate::failure::UserError;
use crate::sampling;

/// What `/set` is given to take back what it changed.
const DEFAULT: &str = "default";

/// Every setting, and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    flags: SettingArgs,
    /// Names as of flags, each once.
    changes: Vec<(String, String)>,
    /// The flags with the changes over them.
    current: SettingArgs,
    defaults: SamplingDefaults,
}

impl Settings {
    pub(super) fn new(flags: &SettingArgs, defaults: SamplingDefaults) -> Self {
        Settings { flags: flags.clone(), changes: Vec::new(), current: flags.clone(), defaults }
    }

    /// How the next token is chosen.
    pub(super) fn sampling(&self) -> Sampling {
        sampling::resolve(&self.current.sampling, &self.defaults)
    }

    /// Longest answer.
    pub(super) fn max_new_tokens(&self) -> usize {
        self.current.max_new_tokens.unwrap_or(usize::MAX)
    }

    /// Changes one; `default` takes the changes back.
    ///
    /// # Errors
    /// For a name that no setting has, and a value that this one cannot have; nothing changes then.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), UserError> {
        let name = name.trim_start_matches('-').replace('_', "-");
        let names = names();
        if !names.contains(&name) {
            return Err(UserError::new(format_args!(
                "there is no setting {name}; there are {}",
                names.join(", ")
            )));
        }
        let mut changes = self.changes.clone();
        changes.retain(|(changed, _)| *changed != name);
        if value != DEFAULT {
            changes.push((name, value.to_owned()));
        }
        let mut line = SettingLine { settings: self.flags.clone() };
        let flags = changes.iter().map(|(name, value)| format!("--{name}={value}"));
        line.try_update_from(flags).map_err(|error| reason(&error))?;
        (self.changes, self.current) = (changes, line.settings);
        Ok(())
    }

    /// A line for each, with its value.
    pub(super) fn lines(&self) -> Vec<String> {
        let Sampling { temperature, top_k, top_p, min_p, seed, .. } = self.sampling();
        let Sampling { repetition_penalty, presence_penalty, frequency_penalty, .. } = self.sampling();
        let limit = self.current.max_new_tokens.map_or("the context".to_owned(), |most| most.to_string());
        let values = [
            limit,
            temperature.to_string(),
            top_k.to_string(),
            top_p.to_string(),
            min_p.to_string(),
            repetition_penalty.to_string(),
            presence_penalty.to_string(),
            frequency_penalty.to_string(),
            seed.map_or("another each time".to_owned(), |seed| seed.to_string()),
        ];
        names().iter().zip(values).map(|(name, value)| format!("{name:<20}{value}")).collect()
    }
}

/// Every setting, in the order of the flags.
fn names() -> Vec<String> {
    let command = SettingLine::command();
    command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

/// What clap says of a value, without what it says to people who type flags.
fn reason(error: &clap::Error) -> UserError {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    UserError::new(first.strip_prefix("error: ").unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut flags = SettingArgs::default();
        flags.sampling.temperature = Some(0.5);
        Settings::new(&flags, SamplingDefaults { top_k: Some(50), ..SamplingDefaults::default() })
    }

    #[test]
    fn a_change_wins_over_flags_until_it_is_taken_back() {
        let mut settings = settings();
        settings.set("temperature", "0.7").unwrap();
        settings.set("top_p", "0.9").unwrap();
        settings.set("max-new-tokens", "8").unwrap();
        let sampling = settings.sampling();
        assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p), (0.7, 50, 0.9));
        assert_eq!(settings.max_new_tokens(), 8);
        settings.set("temperature", "default").unwrap();
        let sampling = settings.sampling();
        assert_eq!((sampling.temperature, sampling.top_p), (0.5, 0.9));
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_as_the_flag_refuses_it_and_changes_nothing() {
        let mut settings = settings();
        let message = settings.set("temperature", "-1").unwrap_err().message;
        assert!(
            message.contains("'-1' for '--temperature") && message.ends_with("must be at least 0"),
            "{message}"
        );
        let message = settings.set("warmth", "1").unwrap_err().message;
        assert!(
            message.starts_with("there is no setting warmth; there are max-new-tokens, temperature,"),
            "{message}"
        );
        assert_eq!(settings.sampling().temperature, 0.5);
    }

    #[test]
    fn every_setting_is_listed_with_its_value() {
        let lines = settings().lines();
        assert_eq!(lines.len(), names().len());
        assert_eq!(lines[0], "max-new-tokens      the context");
        assert_eq!(lines[1], "temperature         0.5");
        assert_eq!(lines[8], "seed                another each time");
    }
}
