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
    for flags in [
        "--check",
        "--bundle b --model m",
        "--model m --check",
        "--package p --check",
        "--bundle b --text",
        "--text",
    ] {
        assert!(parse(&format!("lone inspect {flags}")).is_err(), "{flags}");
    }
}

#[test]
fn run_takes_a_bundle_or_a_model_and_not_both() {
    assert!(parse("lone run --bundle b").is_ok());
    assert!(parse("lone run --model m --ctx 64").is_ok());
    for line in ["lone run", "lone run --bundle b --model m", "lone run --bundle b --ctx 64"] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_flag_that_does_not_go_with_a_bundle_is_named_and_no_other_is() {
    for command in ["run", "chat", "bench", "eval --exam e", "verify --model m"] {
        let message = refusal(&format!("lone {command} --bundle b --spec-drafts 4"));
        let conflict = message.split("\n\n").next().unwrap();
        assert!(conflict.contains("--bundle") && conflict.contains("--spec-drafts"), "{message}");
        assert!(!conflict.contains("--ctx"), "{message}");
    }
    let command = Cli::command();
    let convert = command.find_subcommand("convert").unwrap();
    let group = convert.get_groups().find(|group| group.get_id() == "ConversionArgs").unwrap();
    let flags: Vec<&str> = group.get_args().map(|flag| flag.as_str()).collect();
    assert_eq!(flags, CONVERSION_FLAGS);
}

#[test]
fn there_is_one_prompt() {
    assert!(parse("lone run --model m --prompt-ids 1,5,7").is_ok());
    let twice = ["--prompt x --prompt-ids 1", "--prompt-ids 1 --chat", "--prompt x --prompt-file y"];
    for flags in twice.into_iter().chain(["--system x", "--prompt-ids 1 --system x"]) {
        assert!(parse(&format!("lone run --model m {flags}")).is_err(), "{flags}");
    }
}

#[test]
fn of_ring_and_no_ring_the_last_one_counts() {
    let Command::Convert(args) = parse("lone convert --model m --out o --ring --no-ring").unwrap().command
    else {
        panic!("another command");
    };
    assert!(args.conversion.no_ring && !args.conversion.ring);
}

#[test]
fn a_number_out_of_bounds_is_refused_with_its_flag() {
    let message = refusal("lone run --model m --temperature -1");
    assert!(message.contains("--temperature") && message.contains("at least 0"), "{message}");
    let message = refusal("lone convert --model m --out o --ctx 0");
    assert!(message.contains("--ctx"), "{message}");
}

#[test]
fn a_negative_number_is_a_number_out_of_bounds_and_no_flag() {
    for flag in ["--ctx", "--prefill", "--head-chunks", "--threads", "--max-new-tokens", "--top-k", "--seed"]
    {
        let message = refusal(&format!("lone run --model m {flag} -1"));
        assert!(message.contains(flag) && message.contains("must be "), "{message}");
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for flags in
        ["--decode-only --prefill 8", "--decode-only --prefill-only", "--prefill-only --spec-drafts 16"]
    {
        assert!(parse(&format!("lone convert --model m --out o {flags}")).is_err(), "{flags}");
    }
    assert!(Cli::try_parse_from(["lone", "run", "--model", "m", "--stop", ""]).is_err());
}
