//! `lone doctor` and `lone warm`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::machine::{Machine, flip_last_byte};

#[test]
fn the_model_inside_is_right_on_every_backend_there_is_and_the_report_says_the_same() {
    let machine = Machine::new();
    let outcome = machine.run(&["doctor", "--gen", "2", "--report", "report.md"]);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    for backend in ["cpu", "ane-sim"] {
        for passes in ["decode", "prefill", "verify"] {
            let row = outcome.stdout.lines().find(|line| {
                let mut words = line.split_whitespace();
                words.next() == Some(backend) && words.next() == Some(passes)
            });
            assert!(row.is_some_and(|row| row.ends_with("ok")), "{backend} {passes}: {}", outcome.stdout);
        }
    }
    let report = std::fs::read_to_string(machine.path().join("report.md")).unwrap();
    assert!(report.starts_with("# lone doctor") && report.ends_with("All is well.\n"), "{report}");
    let cell = outcome.stdout.lines().find(|line| line.contains("decode ")).unwrap();
    let cosine = cell.split_whitespace().nth(2).unwrap();
    assert!(report.contains(cosine), "{cosine}: {report}");
}

#[test]
#[cfg(not(target_os = "macos"))]
fn core_ml_is_said_to_be_absent_which_is_no_fault() {
    let outcome = Machine::new().run(&["doctor", "--gen", "1", "--json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let trials = report["trials"].as_array().unwrap();
    let absent: Vec<&str> = trials
        .iter()
        .filter(|trial| trial["outcome"] == "absent")
        .map(|trial| trial["backend"].as_str().unwrap())
        .collect();
    assert_eq!(absent, ["coreml cpu_only", "coreml cpu_and_ne"]);
    assert_eq!(report["no_placement"], "Core ML is part of macOS, and this is linux");
    assert_eq!((outcome.code, &report["meter"]), (0, &Value::Null));
}

#[test]
fn what_was_found_is_printed_even_if_the_report_cannot_be_written() {
    let outcome = Machine::new().run(&["doctor", "--gen", "1", "--report", "no/such/dir/report.md"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("Is it right?"), "{}", outcome.stdout);
    let last = outcome.stderr.lines().last().unwrap();
    assert!(last.starts_with("error: cannot write no/such/dir/report.md: "), "{last}");
}

#[test]
fn a_report_that_was_cut_short_has_what_was_found_and_says_what_was_tried() {
    let machine = Machine::new();
    let mut doctor = machine.process();
    let mut doctor = doctor.args(["doctor", "--report", "report.md"]).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(doctor.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.into_iter().any(|line| line == "trying ane-sim"), "it was not tried");
    doctor.kill().unwrap();
    doctor.wait().unwrap();
    let report = std::fs::read_to_string(machine.path().join("report.md")).unwrap();
    assert!(report.contains("| cpu | decode |"), "{report}");
    assert!(report.ends_with("**not complete: it ended at ane-sim**\n"), "{report}");
}

#[test]
fn a_bundle_that_was_changed_is_not_well() {
    let machine = Machine::new();
    let flags = ["--out", "bundle", "--ctx", "64", "--prefill", "16"];
    assert_eq!(machine.run(&[&["convert", "--model", "demo"][..], &flags].concat()).code, 0);
    flip_last_byte(&machine.path().join("bundle/head_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin"));
    let outcome = machine.run(&["doctor", "--bundle", "bundle", "--gen", "1", "--report", "report.md"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stdout);
    let end = "error: not well: 1 file not as written\n hint: copy the bundle again, or convert the checkpoint again\n";
    assert!(outcome.stderr.ends_with(end), "{}", outcome.stderr);
    let report = std::fs::read_to_string(machine.path().join("report.md")).unwrap();
    assert!(report.contains("weight.bin") && report.ends_with("**not well: 1 file not as written**\n"));
}

#[test]
fn a_bundle_that_cannot_decode_is_refused_before_anything_runs() {
    let machine = Machine::new();
    let flags = ["--out", "bundle", "--ctx", "64", "--prefill", "16", "--prefill-only"];
    assert_eq!(machine.run(&[&["convert", "--model", "demo"][..], &flags].concat()).code, 0);
    let outcome = machine.run(&["doctor", "--bundle", "bundle"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    error: tiny-lfm3 has no decode functions, and `lone doctor` decodes with every backend
     hint: convert without --prefill-only, or compare with `lone verify --function prefill`
    ");
}

#[test]
fn warming_loads_every_function_of_every_package() {
    let machine = Machine::new();
    let flags = ["--out", "bundle", "--ctx", "64", "--prefill", "16", "--spec-drafts", "3"];
    assert_eq!(machine.run(&[&["convert", "--model", "demo"][..], &flags].concat()).code, 0);
    let warmed = machine.run(&["warm", "--bundle", "bundle", "--json"]);
    assert_eq!(warmed.code, 0, "{}", warmed.stderr);
    let warmed: Value = serde_json::from_str(&warmed.stdout).unwrap();
    let inspected: Value =
        serde_json::from_str(&machine.run(&["inspect", "--bundle", "bundle", "--json"]).stdout).unwrap();
    let mut expected = Vec::new();
    for graph in inspected["graphs"].as_array().unwrap() {
        for function in graph["functions"].as_array().unwrap() {
            expected.push((graph["package"].clone(), function["name"].clone()));
        }
    }
    let functions = warmed["functions"].as_array().unwrap().iter();
    let functions: Vec<_> =
        functions.map(|function| (function["package"].clone(), function["function"].clone())).collect();
    assert_eq!(functions, expected);
}
