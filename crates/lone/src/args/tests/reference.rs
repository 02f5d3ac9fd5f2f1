//! docs/cli.md, made from the definition of the flags.

use std::fmt::Write;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::Cli;
use crate::environment::VARIABLES;

const HEAD: &str = "\
# Commands, flags, environment

Every flag and every environment variable of lone. This page is made from the program itself and compared with it by a
test; `UPDATE_DOCS=1 cargo test -p lone --bin lone reference` writes it anew.

Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 something is wrong with what was given, 2 usage
or a fault in lone, 130 interrupted. `lone help COMMAND` shows the same with examples.
";

#[test]
fn the_reference_in_docs_is_that_of_this_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let expected = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(
        found == expected,
        "docs/cli.md is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p lone --bin lone reference"
    );
}

fn reference() -> String {
    let cli = Cli::command();
    let mut page = HEAD.to_owned();
    push_flags(&mut page, &cli, |_| true);
    for command in cli.get_subcommands() {
        writeln!(page, "\n## `lone {}`\n", command.get_name()).unwrap();
        let about = command.get_long_about().or(command.get_about());
        writeln!(page, "{}", about.map(StyledStr::to_string).unwrap_or_default()).unwrap();
        push_flags(&mut page, command, |arg| !arg.is_global_set());
    }
    page += "\n## Environment\n\n| variable | meaning |\n|---|---|\n";
    for variable in VARIABLES {
        writeln!(page, "| `{}` | {} |", variable.name, variable.purpose).unwrap();
    }
    page
}

/// A table for the flags under each heading, in the order of the help texts.
fn push_flags(page: &mut String, command: &Command, shown: impl Fn(&Arg) -> bool) {
    let mut headings: Vec<Option<&str>> = Vec::new();
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| shown(arg)).collect();
    for arg in &args {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        writeln!(page, "\n| {} | |\n|---|---|", heading.unwrap_or("Flags")).unwrap();
        for arg in args.iter().filter(|arg| arg.get_help_heading() == heading) {
            writeln!(page, "| {} | {} |", usage(arg), meaning(arg)).unwrap();
        }
    }
}

/// How a flag is typed, such as `-p`, `--prompt TEXT`.
fn usage(arg: &Arg) -> String {
    let takes_value = arg.get_action().takes_values();
    let id = arg.get_id().as_str().to_uppercase();
    let value = arg.get_value_names().map_or(id, |names| names.join(" "));
    let value = if takes_value { value } else { String::new() };
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let long = arg.get_long().map(|long| format!("--{long} ")).unwrap_or_default();
    format!("{short}`{}`", format!("{long}{value}").trim_end())
}

fn meaning(arg: &Arg) -> String {
    let mut meaning = text(arg.get_long_help().or(arg.get_help()));
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|value| {
            let help = value.get_help().map(|help| format!(" ({help})")).unwrap_or_default();
            format!("`{}`{help}", value.get_name())
        })
        .collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        meaning += &format!(". One of {}", values.join(", "));
    }
    for default in arg.get_default_values().iter().filter(|_| arg.get_action().takes_values()) {
        meaning += &format!(" [default: {}]", default.to_string_lossy());
    }
    meaning.replace('|', "\\|")
}

fn text(styled: Option<&StyledStr>) -> String {
    styled.map(|styled| styled.to_string().replace('\n', " ")).unwrap_or_default()
}
