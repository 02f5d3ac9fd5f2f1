//! What clap makes of command lines, and whether docs/cli.md still tells the truth.

mod reference;

use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

fn refusal(line: &str) -> String {
    parse(line).unwrap_err().to_string()
}

#[test]
fn the_definition_of_the_flags_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_mistyped_command_or_flag_gets_a_suggestion() {
    assert!(refusal("lone inspekt").contains("'inspect'"), "{}", refusal("lone inspekt"));
    assert!(refusal("lone inspect --modle x").contains("'--model'"), "{}", refusal("lone inspect --modle x"));
}

#[test]
fn inspect_looks_at_exactly_one_thing() {
    assert!(parse("lone inspect --bundle b --check --json").is_ok());
    for flags in ["--check", "--bundle b --model m", "--model m --check", "--package p --check"] {
        assert!(parse(&format!("lone inspect {flags}")).is_err(), "{flags}");
    }
}
