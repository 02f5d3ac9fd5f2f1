//! What `lone` says of itself, and what it says to command lines it does not understand.

use crate::machine::{Machine, names};

#[test]
fn help_of_the_program_and_of_each_command() {
    let machine = Machine::new();
    for command in [
        "",
        "convert",
        "run",
        "chat",
        "serve",
        "verify",
        "eval",
        "inspect",
        "bench",
        "warm",
        "doctor",
        "completions",
        "man",
    ] {
        let outcome = machine.run(&["help", command][..1 + usize::from(!command.is_empty())]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{command}");
        insta::assert_snapshot!(format!("help {command}").trim().replace(' ', "_"), outcome.stdout);
    }
}

#[test]
fn the_version_is_one_line() {
    let outcome = Machine::new().run(&["--version"]);
    assert_eq!(outcome.stdout, concat!("lone ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_usage_error_goes_to_stderr_and_exits_with_2() {
    let outcome = Machine::new().run(&["inspekt"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    error: unrecognized subcommand 'inspekt'

      tip: a similar subcommand exists: 'inspect'

    Usage: lone [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn a_script_for_each_shell_completes_the_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let outcome = Machine::new().run(&["completions", shell]);
        assert_eq!(outcome.code, 0, "{shell}: {}", outcome.stderr);
        assert!(outcome.stdout.contains("bundle"), "{shell}");
    }
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let machine = Machine::new();
    let outcome = machine.run(&["man", "man1"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let pages = names(&machine.path().join("man1"));
    assert_eq!(outcome.stderr, format!("{} pages in man1\n", pages.len()));
    for page in ["lone.1", "lone-run.1", "lone-doctor.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
    let run = std::fs::read_to_string(machine.path().join("man1/lone-run.1")).unwrap();
    assert!(run.contains("max\\-new\\-tokens"), "{run}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    // The script is longer than a pipe holds, so `lone` is still writing when `head` ends.
    let machine = Machine::new();
    let lone = machine.program().display().to_string();
    let script = format!("{{ {lone} completions zsh; {lone} completions zsh; echo $? >&2; }} | head -1");
    assert_eq!(machine.outcome(&mut machine.shell(&script)).stderr, "0\n");
}

#[test]
fn flags_that_do_not_go_together_are_usage_errors() {
    let machine = Machine::new();
    let too_long = ["--prefill", "64", "--ctx", "7"];
    let too_many = ["--head-chunks", "9999"];
    for flags in [&too_long[..], &too_many, &["--prefill-only", "--spec-drafts", "16"]] {
        let outcome = machine.run(&[&["convert", "--model", "demo", "--out", "bundle"][..], flags].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(flags[0]), "{}", outcome.stderr);
    }
    let run = ["run", "--bundle", "b"];
    for (flag, value, expected) in [("--threads", "100000", "between 1 and 256"), ("--stop", "", "required")]
    {
        let outcome = machine.run(&[&run[..], &[flag, value]].concat());
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
}

#[test]
fn guesses_that_no_conversion_could_check_are_a_usage_error_and_nothing_is_converted() {
    let machine = Machine::new();
    for command in ["run", "chat", "serve"] {
        for (flags, other) in [
            (&["--spec", "suffix", "--prefill-only"], "--prefill-only"),
            (&["--spec-ngram", "--ctx", "1"], "--ctx 1"),
        ] {
            let outcome = machine.run(&[&[command, "--model", "demo"], &flags[..]].concat());
            let message = format!("error: --spec does not go with {other}: ");
            assert!(outcome.stderr.starts_with(&message), "{}", outcome.stderr);
            assert_eq!(outcome.code, 2);
        }
    }
    assert!(!machine.path().join("cache").exists(), "something was converted");
}
