//! What a line means: something said, or a command.

use std::path::PathBuf;

use super::input;
use crate::failure::UserError;

/// Every command: its name, what follows it, and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 10] = [
    ("/help", "", "list the commands"),
    ("/exit", "", "end the conversation, as Ctrl-D does"),
    ("/reset", "", "forget what was said; the model stays loaded"),
    ("/system", "[TEXT|none]", "show or change what the model is told first; the conversation stays"),
    ("/retry", "", "have the last turn answered again"),
    ("/undo", "", "take the last turn and its answer back"),
    ("/set", "[NAME VALUE|default]", "show or change a setting, as in /set temperature 0.7"),
    ("/stats", "", "show what the conversation has cost so far"),
    ("/save", "FILE", "keep the conversation, with all the model has computed for it"),
    ("/load", "FILE", "go on with a conversation that was kept"),
];

/// What a line can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Say(String),
    Command(Command),
}

/// A command with what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Exit,
    Reset,
    /// Show it, or change it: to nothing, or to a text.
    System(Option<Option<String>>),
    Retry,
    Undo,
    /// Show all, or change one.
    Set(Option<(String, String)>),
    Stats,
    Save(PathBuf),
    Load(PathBuf),
}

/// What `text` means; `None` for a blank line. A text between `"""` is said as it is, and one that begins with `//` is
/// said with one slash.
///
/// # Errors
/// For commands that there are not, and those that lack something or have too much.
pub(super) fn parse(text: &str) -> Result<Option<Entry>, UserError> {
    if let Some(block) = input::block(text) {
        return Ok(Some(block)
            .filter(|block| !block.trim().is_empty())
            .map(|block| Entry::Say(block.into())));
    }
    let text = text.trim_end();
    match text.strip_prefix('/') {
        _ if text.is_empty() => Ok(None),
        None => Ok(Some(Entry::Say(text.to_owned()))),
        Some(escaped) if escaped.starts_with('/') => Ok(Some(Entry::Say(escaped.to_owned()))),
        Some(_) => command(text).map(|command| Some(Entry::Command(command))),
    }
}

fn command(text: &str) -> Result<Command, UserError> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let file = || match rest {
        "" => Err(UserError::new(format_args!("{name} needs a file")).with_hint(format_args!("{name} FILE"))),
        path => Ok(PathBuf::from(path)),
    };
    let command = match name {
        "/save" => Command::Save(file()?),
        "/load" => Command::Load(file()?),
        "/system" => Command::System(match rest {
            "" => None,
            "none" => Some(None),
            text => Some(Some(text.to_owned())),
        }),
        "/set" => Command::Set(setting(rest)?),
        _ => return without_argument(name, rest),
    };
    Ok(command)
}

fn without_argument(name: &str, rest: &str) -> Result<Command, UserError> {
    let command = match name {
        "/help" | "/?" => Command::Help,
        "/exit" | "/quit" => Command::Exit,
        "/reset" => Command::Reset,
        "/retry" => Command::Retry,
        "/undo" => Command::Undo,
        "/stats" => Command::Stats,
        _ => {
            return Err(UserError::new(format_args!("there is no command {name}"))
                .with_hint("/help lists them; //… says a text that begins with a slash"));
        }
    };
    match rest {
        "" => Ok(command),
        _ => Err(UserError::new(format_args!("nothing follows {name}, found `{rest}`"))),
    }
}

/// `NAME VALUE` or `NAME=VALUE`.
fn setting(rest: &str) -> Result<Option<(String, String)>, UserError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let is_between = |letter: char| letter.is_whitespace() || letter == '=';
    let parts = rest.split_once(is_between).map(|(name, value)| (name, value.trim_matches(is_between)));
    match parts {
        Some((name, value)) if !value.is_empty() => Ok(Some((name.to_owned(), value.to_owned()))),
        _ => Err(UserError::new(format_args!("/set {rest} lacks a value"))
            .with_hint(format_args!("/set {rest} VALUE, or /set alone to see all"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        match parse(text).unwrap()? {
            Entry::Say(text) => Some(text),
            Entry::Command(command) => panic!("{command:?}"),
        }
    }

    fn commanded(text: &str) -> Command {
        match parse(text).unwrap() {
            Some(Entry::Command(command)) => command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_does_not_begin_with_a_slash_is_said_and_a_blank_line_is_nothing() {
        assert_eq!(said("  What is 1/2?  ").as_deref(), Some("  What is 1/2?"));
        assert_eq!(said("//etc/hosts").as_deref(), Some("/etc/hosts"));
        assert_eq!(said("\"\"\"/save\nme\"\"\"").as_deref(), Some("/save\nme"));
        assert_eq!((said(""), said("  "), said("\"\"\"\n\"\"\"")), (None, None, None));
    }

    #[test]
    fn every_command_in_the_list_is_understood() {
        for (name, rest, _) in COMMANDS {
            let argument = if rest.is_empty() { "" } else { " a 1" };
            assert!(matches!(parse(&format!("{name}{argument}")), Ok(Some(Entry::Command(_)))), "{name}");
        }
    }

    #[test]
    fn commands_take_what_follows_them() {
        assert_eq!(commanded("/save my chat.lone"), Command::Save("my chat.lone".into()));
        assert_eq!(commanded("/system Be  terse. "), Command::System(Some(Some("Be  terse.".into()))));
        assert_eq!(
            (commanded("/system"), commanded("/system none")),
            (Command::System(None), Command::System(Some(None)))
        );
        let set = |name: &str, value: &str| Command::Set(Some((name.into(), value.into())));
        assert_eq!(commanded("/set temperature 0.7"), set("temperature", "0.7"));
        assert_eq!(commanded("/set top_k = 40"), set("top_k", "40"));
        assert_eq!((commanded("/set"), commanded("/quit")), (Command::Set(None), Command::Exit));
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_what_can() {
        for (line, message) in [
            ("/sav x", "there is no command /sav"),
            ("/save", "/save needs a file"),
            ("/undo 2", "nothing follows /undo, found `2`"),
            ("/set temperature", "/set temperature lacks a value"),
        ] {
            assert_eq!(parse(line).unwrap_err().message, message);
        }
    }
}
