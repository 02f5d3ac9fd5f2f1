//! `lone verify`: what it compares, what it says, and when it says no.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;
use xtask::fake_checkpoint::{self, Model, Options, Preset};

use crate::machine::{Machine, Outcome, model, wait_until};

const QUESTION: [&str; 6] =
    ["verify", "--model", "demo", "--chat", "--prompt", "What is the capital of France?"];

fn verify(machine: &Machine, flags: &[&str]) -> Outcome {
    machine.run(&[&QUESTION[..], flags].concat())
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {}", outcome.stderr))
}

/// A machine with a bundle of the demo model in `bundle`.
fn with_bundle(flags: &[&str]) -> Machine {
    let machine = Machine::new();
    let convert = ["convert", "--model", "demo", "--out", "bundle", "--ctx", "1024"];
    let outcome = machine.run(&[&convert[..], flags].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    machine
}

fn golden() -> String {
    model("tiny-lfm3/golden.safetensors").to_str().unwrap().to_owned()
}

#[test]
fn a_conversion_is_close_to_its_checkpoint_at_every_layer() {
    let outcome = verify(&Machine::new(), &["--max-new-tokens", "16", "--json"]);
    let report = json(&outcome);
    assert_eq!((outcome.code, &report["passed"]), (0, &true.into()), "{}", outcome.stderr);
    assert!(report["logits"]["cosine"]["worst"].as_f64().unwrap() > 0.9999, "{report:#}");
    assert_eq!(report["logits"]["argmax"]["same"], report["tokens"]);
    let stages: Vec<&str> =
        report["hidden"].as_array().unwrap().iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!((stages.len(), stages[0], stages[1], stages[9]), (10, "embeddings", "layer 0", "final norm"));
    let top = report["logits"]["top"].as_array().unwrap();
    assert_eq!((top.len(), &top[0]["reference"]["text"]), (5, &top[0]["bundle"]["text"]));
    let answer = &report["answer"];
    assert_eq!(answer["text"], "The capital of France is Paris.<|im_end|>");
    assert_eq!(answer["divergence"], Value::Null);
}

#[test]
fn the_report_shows_likeliest_tokens_side_by_side_and_every_layer() {
    let outcome = verify(&Machine::new(), &["--max-new-tokens", "16"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for part in [
        "tiny-lfm3 on cpu, against the checkpoint in f32",
        " by decode passes of 1 token\n",
        "files are as written",
        "next token   reference",
        "layer 4     sliding attention",
        "8 tokens, each the reference's choice",
        "Close enough: ",
    ] {
        assert!(outcome.stdout.contains(part), "no {part:?} in {}", outcome.stdout);
    }
    assert!(outcome.stderr.contains("the reference reads "), "{}", outcome.stderr);
}

#[test]
fn below_the_bar_the_report_is_followed_by_a_refusal() {
    let outcome = verify(&Machine::new(), &["--min-cos", "1"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("Hidden states"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("error: the bundle is not close enough: "), "{}", outcome.stderr);
}

#[test]
fn the_bundle_of_another_model_is_found_out() {
    let machine = with_bundle(&[]);
    let other = model("tiny-lfm2");
    let flags =
        ["verify", "--bundle", "bundle", "--model", other.to_str().unwrap(), "--prompt-ids", "1,44,9"];
    let outcome = machine.run(&[&flags[..], &["--json"]].concat());
    assert_eq!((outcome.code, &json(&outcome)["passed"]), (1, &false.into()), "{}", outcome.stderr);
    let micro = model("micro/lfm3-window8");
    let outcome =
        machine.run(&["verify", "--bundle", "bundle", "--model", micro.to_str().unwrap(), "--prompt", "x"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("another checkpoint than"), "{}", outcome.stderr);
}

#[test]
fn a_record_of_transformers_takes_the_place_of_prompt_and_checkpoint() {
    let machine = with_bundle(&["--spec-drafts", "4"]);
    for function in ["decode", "prefill", "verify"] {
        let flags = ["verify", "--bundle", "bundle", "--reference", &golden(), "--function", function];
        let outcome = machine.run(&[&flags[..], &["--min-cos", "0.9999", "--json"]].concat());
        let report = json(&outcome);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!((&report["tokens"], &report["function"]), (&600.into(), &function.into()));
    }
}

#[test]
fn prefill_is_verified_in_every_size_and_the_report_is_of_the_least_alike() {
    let machine = with_bundle(&["--prefill", "16,64,7"]);
    let flags = ["verify", "--bundle", "bundle", "--reference", &golden(), "--function", "prefill"];
    let report = json(&machine.run(&[&flags[..], &["--json"]].concat()));
    let passes = report["passes"].as_array().unwrap();
    let sizes: Vec<u64> = passes.iter().map(|pass| pass["tokens"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [7, 16, 64]);
    let means: Vec<f64> = passes.iter().map(|pass| pass["cosine"]["mean"].as_f64().unwrap()).collect();
    let least = means.iter().copied().fold(1.0, f64::min);
    assert!(least > 0.9999 && report["logits"]["cosine"]["mean"] == least, "{report:#}");
    let outcome = machine.run(&flags);
    for line in ["  600 tokens by prefill passes; ", "\n    of     7  mean cosine of logits "] {
        assert!(outcome.stdout.contains(line), "no {line:?} in {}", outcome.stdout);
    }
    assert!(!outcome.stderr.contains("the reference reads"), "{}", outcome.stderr);
}

#[test]
fn a_model_without_a_tokenizer_is_verified_by_its_record() {
    let micro = model("micro/lfm2-untied-bias-f32");
    let record = micro.join("golden.safetensors");
    let flags = [
        "verify",
        "--model",
        micro.to_str().unwrap(),
        "--reference",
        record.to_str().unwrap(),
        "--ctx",
        "64",
    ];
    let report = json(&Machine::new().run(&[&flags[..], &["--min-cos", "0.9999", "--json"]].concat()));
    assert_eq!((&report["passed"], &report["tokens"]), (&true.into(), &48.into()));
    assert_eq!(report["logits"]["top"][0]["bundle"]["text"], Value::Null);
}

#[test]
fn a_changed_file_is_found_before_anything_runs() {
    let machine = with_bundle(&[]);
    let name = "bundle/head_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin";
    let path = machine.path().join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let outcome = machine.run(&["verify", "--bundle", "bundle", "--reference", &golden()]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    error: bundle: not as written: head_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin
     hint: copy the bundle again, or convert the checkpoint again
    ");
}

#[test]
fn flags_that_make_no_sense_together_are_refused() {
    let machine = with_bundle(&[]);
    let golden = golden();
    let refusals: [(&[&str], &str); 5] = [
        (&["--prompt", "x"], "the reference is the checkpoint, and none is given"),
        (&["--reference", &golden, "--prompt", "x"], "the tokens come from"),
        (&["--reference", &golden, "--max-new-tokens", "3"], "does not say how the reference would go on"),
        (&["--reference", &golden, "--function", "verify"], "hint: convert with --spec-drafts 16"),
        (&["--reference", "nowhere.safetensors"], "cannot read nowhere.safetensors"),
    ];
    for (flags, expected) in refusals {
        let outcome = machine.run(&[&["verify", "--bundle", "bundle"], flags].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""), "{flags:?}");
        assert!(outcome.stderr.contains(expected), "{flags:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_prompt_that_the_model_cannot_read_is_refused_whole() {
    let machine = with_bundle(&[]);
    let outcome =
        machine.run(&["verify", "--bundle", "bundle", "--model", "demo", "--prompt-ids", "1,5,99999"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("token 2 is 99999"), "{}", outcome.stderr);
}

#[test]
fn drift_is_drawn_by_layer() {
    let machine = Machine::new();
    let outcome = verify(&machine, &["--plot", "drift.svg"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let svg = std::fs::read_to_string(machine.path().join("drift.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for part in
        ["tiny-lfm3 on cpu", "worst position", "full attention", "sliding attention", "norm", "logits"]
    {
        assert!(svg.contains(part), "{part}");
    }
    // A dot for each of ten hidden states and the logits, in both lines.
    assert_eq!(svg.matches("<circle").count(), 22);
}

#[test]
fn ranges_are_those_of_every_value() {
    let report = json(&verify(&Machine::new(), &["--ranges", "--json"]));
    let ranges = report["ranges"].as_array().unwrap();
    assert!(ranges.len() > 300, "{}", ranges.len());
    for range in ranges {
        let limit = match range["op"].as_str().unwrap() {
            "conv" | "matmul" => 32_768.0,
            "exp" => continue,
            _ if range["limit"].is_null() => continue,
            _ => 65_504.0,
        };
        assert_eq!(range["limit"], limit, "{range}");
        assert!(range["largest"].as_f64().unwrap() < limit, "{range}");
    }
    let outcome = verify(&Machine::new(), &["--ranges"]);
    assert!(outcome.stdout.contains("nearest to its limit is "), "{}", outcome.stdout);
}

#[test]
fn without_the_precision_rules_a_feed_forward_wider_than_4096_fails_on_the_simulated_engine() {
    let machine = Machine::new();
    let lfm3 = Preset::Lfm3_1_7b.model();
    let model =
        Model { hidden: 64, heads: 4, head_dim: 16, ffn: 8200, layers: 5, window: 8, vocab: 300, ..lfm3 };
    let options = Options { tokenizer: false, ..Options::new(model) };
    fake_checkpoint::write(&machine.path().join("wide"), &options).unwrap();
    let ids = (0..20).map(|i| (i * 13 % 300).to_string()).collect::<Vec<_>>().join(",");
    let flags = ["verify", "--model", "./wide", "--prompt-ids", &ids, "--ctx", "32", "--json"];
    let report = |more: &[&str]| json(&machine.run(&[&flags[..], more].concat()));
    let on_engine = ["--backend", "ane-sim"];
    assert_eq!(report(&on_engine)["passed"], true);
    assert_eq!(report(&["--no-precision-rules"])["passed"], true, "the rules are for the engine alone");
    let outcome = machine.run(&[&flags[..], &on_engine, &["--no-precision-rules"]].concat());
    assert_eq!((outcome.code, &json(&outcome)["passed"]), (1, &false.into()), "{}", outcome.stderr);
}

/// A shell script that stands in for Python.
fn python(machine: &Machine, script: &str) -> String {
    let path = machine.path().join("python");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_python_without_transformers_is_told_what_it_lacks() {
    let machine = Machine::new();
    // Isolated and without site-packages, any Python is bare.
    let bare = python(&machine, "exec python3 -I -S \"$@\"");
    let mut command = machine.lone(&[&QUESTION[..], &["--reference", "hf"]].concat());
    let outcome = machine.outcome(command.env("LONE_PYTHON", bare));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(
        outcome.stderr.contains("[DIR]/python has no torch, no transformers, no safetensors"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("hint: set LONE_PYTHON"), "{}", outcome.stderr);
}

#[test]
fn ctrl_c_ends_the_wait_for_the_reference() {
    let machine = Machine::new();
    let patient = python(&machine, "[ $# = 3 ] || exit 0\ntouch waiting; exec sleep 600");
    let child = machine
        .process()
        .args(QUESTION)
        .args(["--reference", "hf", "--json"])
        .env("LONE_PYTHON", patient)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| machine.path().join("waiting").exists());
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(130), vec![]), "{stderr}");
    assert_eq!(stderr.lines().last(), Some("interrupted: nothing was compared"));
}

#[test]
fn an_answer_ends_with_its_turn_however_long_it_may_be() {
    let most = usize::MAX.to_string();
    let report = json(&verify(&Machine::new(), &["--max-new-tokens", &most, "--json"]));
    assert_eq!(report["answer"]["text"], "The capital of France is Paris.<|im_end|>");
}

#[test]
fn what_transformers_writes_down_is_compared() {
    let micro = model("micro/lfm3-window8");
    let record = micro.join("golden.safetensors");
    let bytes = std::fs::read(&record).unwrap();
    let tokens = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tokens = tokens.tensor("tokens").unwrap();
    let ids = tokens.data().as_chunks().0.iter().map(|&id| i32::from_le_bytes(id).to_string());
    let ids = ids.collect::<Vec<_>>().join(",");
    let machine = Machine::new();
    // It says what was recorded, wherever it is told to write it.
    let copy = format!(
        "[ $# = 3 ] || exit 0\nout=$(sed 's/.*\"out\":\"\\([^\"]*\\)\".*/\\1/')\ncp {} \"$out\"",
        record.display()
    );
    let recorded = python(&machine, &copy);
    let flags = ["verify", "--model", micro.to_str().unwrap(), "--prompt-ids", &ids, "--ctx", "64"];
    let mut command = machine.lone(&[&flags[..], &["--reference", "hf", "--json"]].concat());
    let outcome = machine.outcome(command.env("LONE_PYTHON", recorded));
    let report = json(&outcome);
    assert_eq!(
        (&report["passed"], &report["reference"]),
        (&true.into(), &"the checkpoint in transformers".into())
    );
}
