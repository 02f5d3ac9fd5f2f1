//! `lone run`: answers, how they are shown, and how they end.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::machine::wait_until;
use crate::machine::{Machine, Outcome, model, names};

const QUESTION: [&str; 6] =
    ["run", "--model", "demo", "--chat", "--prompt", "What is the capital of France?"];

fn json(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn the_demo_model_answers_on_a_fresh_machine_and_again_without_converting() {
    let machine = Machine::new();
    let outcome = machine.run(&QUESTION);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "The capital of France is Paris.\n"),
        "{}",
        outcome.stderr
    );
    let (first, rest) = outcome.stderr.split_once('\n').unwrap();
    assert!(
        first.starts_with("converting tiny-lfm3 on first use, to [DIR]/cache/bundles/tiny-lfm3-"),
        "{first}"
    );
    let again = machine.run(&QUESTION);
    assert_eq!((again.code, again.stdout.as_str()), (0, "The capital of France is Paris.\n"));
    insta::assert_snapshot!(again.masked().stderr, @"prefill 16 tokens in [N] s, [N] tok/s · decode 7 tokens in [N] s, [N] tok/s");
    assert_eq!(again.masked().stderr, machine_line(rest));
    assert_eq!(machine.run(&[&QUESTION[..], &["--quiet"]].concat()).stderr, "");
}

#[test]
fn a_damaged_bundle_in_the_cache_is_named_once_and_made_again() {
    let machine = Machine::new();
    assert_eq!(machine.run(&QUESTION).code, 0);
    let bundles = machine.path().join("cache/bundles");
    let bundle = names(&bundles).into_iter().find(|name| name.starts_with("tiny-lfm3-")).unwrap();
    std::fs::write(bundles.join(bundle).join("embeddings.bin"), "short").unwrap();
    let outcome = machine.run(&QUESTION);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "The capital of France is Paris.\n"));
    assert_eq!(outcome.stderr.matches("warning: ").count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("embeddings.bin"), "{}", outcome.stderr);
}

fn machine_line(stderr: &str) -> String {
    Outcome { code: 0, stdout: String::new(), stderr: stderr.to_owned() }.masked().stderr
}

#[test]
fn json_is_one_object_with_text_tokens_and_statistics() {
    let answer = json(&Machine::new().run(&[&QUESTION[..], &["--json"]].concat()));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&answer), ["text", "token_ids", "finish_reason", "stats"]);
    let stats = ["prefill", "decode", "seed", "model", "bundle", "backend", "ctx", "load_seconds"];
    assert_eq!(keys(&answer["stats"]), stats);
    for phase in ["prefill", "decode"] {
        assert_eq!(keys(&answer["stats"][phase]), ["tokens", "passes", "seconds", "tokens_per_second"]);
    }
    assert_eq!(
        (&answer["text"], &answer["finish_reason"]),
        (&"The capital of France is Paris.".into(), &"stop".into())
    );
    let tokens = answer["token_ids"].as_array().unwrap();
    assert_eq!(tokens.last(), Some(&7.into()), "the end-of-turn token is counted");
    assert_eq!(answer["stats"]["decode"]["tokens"], tokens.len() - 1);
    assert_eq!(answer["stats"]["prefill"]["passes"], 1);
}

#[test]
fn greedy_answers_are_those_of_transformers() {
    let text = std::fs::read(model("tiny-lfm3/greedy.json")).unwrap();
    let greedy: Value = serde_json::from_slice(&text).unwrap();
    let cases = greedy.as_array().or(greedy["cases"].as_array()).unwrap();
    let machine = Machine::new();
    for case in &cases[..5] {
        let ids: Vec<String> = case["prompt_ids"].as_array().unwrap().iter().map(Value::to_string).collect();
        let answer =
            json(&machine.run(&["run", "--model", "demo", "--json", "--prompt-ids", &ids.join(",")]));
        assert_eq!(answer["token_ids"], case["continuation_ids"]);
    }
}

#[test]
fn the_prompt_comes_from_a_flag_a_file_or_stdin_alike() {
    let machine = Machine::new();
    std::fs::write(machine.path().join("prompt.txt"), "What is the capital of France?\n").unwrap();
    let from_file = machine.run(&["run", "--model", "demo", "--chat", "--prompt-file", "prompt.txt"]);
    let mut piped = machine.lone(&["run", "--model", "demo", "--chat"]);
    let from_stdin = machine.outcome(piped.write_stdin("What is the capital of France?\n"));
    assert_eq!(
        (from_file.code, from_file.stdout.as_str()),
        (0, "The capital of France is Paris.\n"),
        "{}",
        from_file.stderr
    );
    assert_eq!(
        (from_stdin.code, from_stdin.stdout.as_str()),
        (0, "The capital of France is Paris.\n"),
        "{}",
        from_stdin.stderr
    );
    let empty = machine.outcome(machine.lone(&["run", "--model", "demo"]).write_stdin(""));
    assert_eq!(
        (empty.code, empty.stderr.as_str()),
        (1, "error: the prompt is empty\n hint: --prompt TEXT\n")
    );
}

#[test]
fn text_for_a_model_without_a_tokenizer_is_refused_before_converting_it() {
    let machine = Machine::new();
    let model = model("micro/lfm3-window8");
    let outcome = machine.run(&["run", "--model", model.to_str().unwrap(), "--prompt", "Hello"]);
    let expected = "error: lfm3-window8 has no tokenizer, so it cannot read text\n \
                    hint: --prompt-ids 1,5,7 gives it tokens\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (1, expected));
    assert!(names(machine.path()).is_empty(), "{:?}", names(machine.path()));
}

#[test]
fn a_raw_prompt_gets_one_beginning_of_text_token() {
    let machine = Machine::new();
    let prefilled = |prompt: &str| {
        let flags = ["run", "--model", "demo", "--json", "--max-new-tokens", "1", "--prompt", prompt];
        json(&machine.run(&flags))["stats"]["prefill"]["tokens"].as_u64().unwrap()
    };
    assert_eq!(prefilled("Hello"), prefilled("<|startoftext|>Hello"));
}

#[test]
fn a_model_without_a_tokenizer_runs_from_token_ids_and_prints_them() {
    let machine = Machine::new();
    let model = model("micro/lfm3-window8");
    let flags = ["run", "--model", model.to_str().unwrap(), "--prompt-ids", "1,5,7", "--max-new-tokens", "4"];
    let plain = machine.run(&flags);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    let answer = json(&machine.run(&[&flags[..], &["--json"]].concat()));
    assert_eq!((&answer["text"], &answer["finish_reason"]), (&Value::Null, &"length".into()));
    let tokens: Vec<String> = answer["token_ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(plain.stdout, tokens.join(" ") + "\n");
    let reference = json(&machine.run(&[&flags[..], &["--json", "--backend", "reference"]].concat()));
    assert_eq!(reference["token_ids"], answer["token_ids"]);
}

#[test]
fn the_simulated_engines_give_the_answer_too() {
    let machine = Machine::new();
    let model = model("tiny-lfm3");
    let flags = ["run", "--model", model.to_str().unwrap(), "--ctx", "128", "--prefill", "16"];
    let prompt = ["--chat", "--prompt", "What is the capital of France?", "--json", "--backend", "ane-sim"];
    for preset in ["m1", "m5", "exact"] {
        let answer = json(&machine.run(&[&flags[..], &prompt, &["--ane-preset", preset]].concat()));
        assert_eq!(answer["text"], "The capital of France is Paris.", "{preset}");
        assert_eq!(answer["stats"]["backend"], "ane-sim");
    }
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let machine = Machine::new();
    let model = model("micro/lfm3-window8");
    let sampled = |seed: &str| {
        let flags =
            ["run", "--model", model.to_str().unwrap(), "--prompt-ids", "1,5,7", "--max-new-tokens", "12"];
        let sampling = ["--temperature", "2", "--top-k", "200", "--seed", seed, "--json"];
        json(&machine.run(&[&flags[..], &sampling].concat()))["token_ids"].clone()
    };
    assert_eq!(sampled("1"), sampled("1"));
    assert_ne!(sampled("1"), sampled("2"));
}

#[test]
fn a_stop_string_ends_the_answer_before_it() {
    let machine = Machine::new();
    let outcome = machine.run(&[&QUESTION[..], &["--stop", "ri", "--json"]].concat());
    let answer = json(&outcome);
    assert_eq!(
        (&answer["text"], &answer["finish_reason"]),
        (&"The capital of France is Pa".into(), &"stop".into())
    );
}

#[test]
fn two_processes_that_need_the_same_model_convert_it_once() {
    let machine = Machine::new();
    let spawn =
        || machine.process().args(QUESTION).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children = [spawn(), spawn()];
    let mut conversions = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "The capital of France is Paris.\n");
        conversions += String::from_utf8(output.stderr).unwrap().matches("converting tiny-lfm3").count();
    }
    assert_eq!(conversions, 1);
    let bundles = names(&machine.path().join("cache/bundles"));
    assert_eq!(bundles.iter().filter(|name| !name.starts_with('.')).count(), 1, "{bundles:?}");
}

#[test]
fn another_option_is_another_bundle() {
    let machine = Machine::new();
    for flags in [&[][..], &["--ctx", "64"]] {
        let answer = json(&machine.run(&[&QUESTION[..], &["--json"], flags].concat()));
        assert_eq!(answer["stats"]["ctx"], if flags.is_empty() { 2048 } else { 64 });
    }
}

#[test]
fn a_damaged_bundle_in_the_cache_is_converted_again() {
    let machine = Machine::new();
    let bundle = json(&machine.run(&[&QUESTION[..], &["--json"]].concat()))["stats"]["bundle"].clone();
    let bundle = bundle.as_str().unwrap().replace("[DIR]", machine.path().to_str().unwrap());
    std::fs::remove_file(std::path::Path::new(&bundle).join("embeddings.bin")).unwrap();
    let outcome = machine.run(&QUESTION);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "The capital of France is Paris.\n"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("embeddings.bin is missing; converting again"), "{}", outcome.stderr);
}

/// A run that would take long, begun.
fn long_run(machine: &Machine, flags: &[&str]) -> Child {
    let model = model("micro/lfm3-window8");
    machine
        .process()
        .args([
            "run",
            "--model",
            model.to_str().unwrap(),
            "--prompt-ids",
            "1,5,7",
            "--ctx",
            "16384",
            "--quiet",
        ])
        .args(["--max-new-tokens", "1000000", "--backend", "reference"])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_the_answer_and_shows_what_there_is() {
    let machine = Machine::new();
    let mut child = long_run(&machine, &[]);
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.ends_with('\n'), "{stdout}");
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_json_as_one_whole_object() {
    let machine = Machine::new();
    // With the conversion done, whatever Ctrl-C stops is the answer.
    let model = model("micro/lfm3-window8");
    let short = ["run", "--model", model.to_str().unwrap(), "--prompt-ids", "1", "--ctx", "16384"];
    assert_eq!(machine.run(&[&short[..], &["--max-new-tokens", "1"]].concat()).code, 0);
    let child = long_run(&machine, &["--json"]);
    wait_until(|| watches_for_ctrl_c(&child));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["finish_reason"], "interrupted");
}

/// Whether the process has a handler for SIGINT, which is signal 2.
#[cfg(target_os = "linux")]
fn watches_for_ctrl_c(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
}

#[test]
fn a_reader_that_goes_away_ends_the_answer_quietly() {
    let machine = Machine::new();
    let mut child = long_run(&machine, &[]);
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("error"), "{stderr}");
}

const COPY: &str = "Copy this code:\nsize = insert(x, 28)\nreturn load(count, x)";

#[test]
fn guessed_tokens_change_the_passes_and_not_the_answer() {
    let machine = Machine::new();
    let asked = |flags: &[&str]| {
        let question =
            ["run", "--model", "demo", "--chat", "--prompt", COPY, "--spec-drafts", "16", "--json"];
        json(&machine.run(&[&question[..], flags].concat()))
    };
    let plain = asked(&[]);
    assert_eq!(plain["text"], "size = insert(x, 28)\nreturn load(count, x)");
    assert_eq!(plain["stats"].get("spec"), None);
    let flags: [&[&str]; 3] = [
        &["--spec", "suffix", "--spec-cost", "1.4"],
        &["--spec-ngram"],
        &["--spec", "ngram", "--spec-n", "4"],
    ];
    for flags in flags {
        let answer = asked(flags);
        assert_eq!(answer["token_ids"], plain["token_ids"], "{flags:?}");
        let (spec, decode) = (&answer["stats"]["spec"], &answer["stats"]["decode"]);
        assert_eq!(decode["tokens"], plain["stats"]["decode"]["tokens"]);
        assert!(spec["accepted"].as_u64() > Some(0) && spec["drafted"].as_u64() >= spec["accepted"].as_u64());
        assert!(decode["passes"].as_u64() < plain["stats"]["decode"]["passes"].as_u64());
        assert!(spec["passes"].as_u64() > Some(0) && spec["tokens_per_pass"].as_f64() > Some(1.0));
    }
    // By measured cost a busy machine may find no guess worth its pass.
    assert_eq!(asked(&["--spec", "suffix"])["token_ids"], plain["token_ids"]);
}

#[test]
fn the_copy_in_the_documentation_is_as_it_says() {
    let docs = include_str!("../../../../docs/speculation.md");
    let (_, example) = docs.split_once("$ lone run --model demo --chat --spec-ngram --prompt '").unwrap();
    let (prompt, rest) = example.split_once("'\n").unwrap();
    let (answer, statistics) = rest.split_once("\nprefill ").unwrap();
    let machine = Machine::new();
    let outcome = machine.run(&["run", "--model", "demo", "--chat", "--spec-ngram", "--prompt", prompt]);
    assert_eq!(outcome.stdout, format!("{answer}\n"), "{}", outcome.stderr);
    let (_, guesses) = statistics.lines().next().unwrap().rsplit_once(" · ").unwrap();
    assert!(outcome.stderr.ends_with(&format!(" · {guesses}\n")), "{}", outcome.stderr);
}

#[test]
fn guessing_is_reported_in_the_line_of_statistics_and_needs_no_flag_to_convert() {
    let machine = Machine::new();
    let outcome =
        machine.run(&["run", "--model", "demo", "--chat", "--prompt", COPY, "--spec-ngram", "--spec-n", "4"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let line = outcome.stderr.lines().last().unwrap();
    assert!(line.contains(" drafts accepted, "), "{line}");
    assert!(line.ends_with(" tokens a pass"), "{line}");
}

#[test]
fn a_bundle_that_cannot_check_guesses_says_how_to_make_one_that_can() {
    let machine = Machine::new();
    let bundle = machine.path().join("plain");
    let bundle = bundle.to_str().unwrap();
    assert_eq!(machine.run(&["convert", "--model", "demo", "--out", bundle]).code, 0);
    let outcome = machine.run(&["run", "--bundle", bundle, "--prompt", "x", "--spec", "suffix"]);
    assert_eq!(outcome.code, 1);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: speculation needs a verify function, and there is none
     hint: convert with --spec-drafts 16
    ");
}

#[test]
fn a_budget_for_caches_refuses_a_prompt_that_needs_more_before_loading() {
    let machine = Machine::new();
    let asked = |budget: &str| {
        let prompt = vec!["5"; 100].join(",");
        let ladder =
            ["run", "--model", "demo", "--ctx", "64,512", "--prefill", "16,64", "--prompt-ids", &prompt];
        machine.run(&[&ladder[..], &["--max-new-tokens", "2", "--quiet", "--kv-budget", budget]].concat())
    };
    let allowed = asked("1MB");
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    let refused = asked("100kB");
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @r"
    error: 100 tokens need caches for 512, which take 278016 bytes, and 100000 are allowed
     hint: a larger --kv-budget, or a bundle converted with a shorter --ctx too
    ");
}
