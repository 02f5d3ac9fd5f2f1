//! `lone bench`: what it measures, in every form it tells it.

use lone_cpu::Isa;
use serde_json::Value;

use crate::machine::{Machine, Outcome};

/// As little work as there can be.
const LITTLE: [&str; 9] =
    ["bench", "--model", "demo", "--prompt-tokens", "9,4", "--gen", "2", "--repeat", "2"];

fn bench(machine: &Machine, flags: &[&str]) -> Outcome {
    let outcome = machine.run(&[&LITTLE[..], flags].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome
}

fn positive(value: &Value) -> f64 {
    let number = value.as_f64().unwrap();
    assert!(number > 0.0 && number.is_finite(), "{value}");
    number
}

#[test]
fn every_bundle_on_every_number_of_threads_is_a_row() {
    let outcome =
        bench(&Machine::new(), &["--threads", "1,2", "--spec-drafts", "3", "--spec", "--profile", "--json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let limits = report["machine"]["limits"].as_array().unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((rows.len(), limits.len()), (2, 2));
    for ((row, limits), threads) in rows.iter().zip(limits).zip([1, 2]) {
        assert_eq!((&row["threads"], &limits["threads"]), (&threads.into(), &threads.into()));
        let lengths: Vec<_> = row["decode"]["by_context"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| point["prompt_tokens"].clone())
            .collect();
        assert_eq!(lengths, [4, 9]);
        let rate = positive(&row["decode"]["tokens_per_second"]);
        let fraction =
            positive(&row["weight_bytes"]) * rate / positive(&limits["bytes_per_second"]["median"]);
        assert!((positive(&row["decode"]["bandwidth_fraction"]) / fraction - 1.0).abs() < 1e-9);
        // Multiply-adds of a token: two for each byte of fp16, the head's left out, which is as large as the embeddings.
        let prefill = positive(&row["prefill"]["tokens_per_second"]);
        let flops = positive(&row["prefill"]["arithmetic_fraction"]) / prefill
            * positive(&limits["flops_per_second"]["median"]);
        let (head, weights) = (2.0 * 1536.0 * 128.0, positive(&row["weight_bytes"]));
        assert!((flops / (weights - head) - 1.0).abs() < 1e-9, "{flops}, {weights}");
        assert_eq!(row["verify"]["tokens"], 4);
        let passes = positive(&row["verify"]["seconds"]["median"]) * rate;
        assert!((positive(&row["verify"]["decode_passes"]) / passes - 1.0).abs() < 1e-9);
        let shares = row["profile"].as_array().unwrap().iter().map(|kind| positive(&kind["share"]));
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_narrower_instruction_set_can_be_measured_if_this_cpu_has_it() {
    let machine = Machine::new();
    let outcome = bench(&machine, &["--threads", "1", "--isa", "scalar", "--json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["machine"]["instruction_set"], "scalar");
    let refused = machine.run(&[&LITTLE[..], &["--isa", "sse"]].concat());
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("this CPU has scalar"), "{}", refused.stderr);
    let elsewhere = machine.run(&[&LITTLE[..], &["--isa", "scalar", "--backend", "ane-sim"]].concat());
    assert_eq!(elsewhere.code, 1);
    assert!(elsewhere.stderr.contains("--isa scalar is for the CPU backend"), "{}", elsewhere.stderr);
}

#[test]
fn rounded_weights_are_rows_of_their_own_where_that_is_faster() {
    let machine = Machine::new();
    let lut4 = [&LITTLE[..], &["--precision", "lut4", "--threads", "1", "--fast-int16"]].concat();
    for (flags, message) in [
        (["--isa", "scalar"], "--fast-int16 gains nothing with scalar"),
        (["--backend", "reference"], "--fast-int16 is for the CPU backend"),
    ] {
        let refused = machine.run(&[&lut4[..], &flags].concat());
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let outcome = machine.run(&[&lut4[..], &["--profile", "--json"]].concat());
    if !Isa::detect().has_fast_int16() {
        assert!(outcome.stderr.contains("--fast-int16 gains nothing with"), "{}", outcome.stderr);
        return;
    }
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!([&rows[0]["fast_int16"], &rows[1]["fast_int16"]], [false, true]);
    assert_eq!(rows.len(), 2);
    let table = bench(&machine, &["--precision", "lut4", "--threads", "1", "--fast-int16"]).stdout;
    assert_eq!(
        (table.matches("(cpu, 1 thread)").count(), table.matches("(cpu fast-int16, 1 thread)").count()),
        (1, 1)
    );
}

#[test]
fn a_table_a_page_and_values_between_commas_tell_the_same_rows() {
    let machine = Machine::new();
    let outcome = bench(&machine, &["--threads", "1", "--html", "bench.html", "--huge-pages", "--quiet"]);
    for line in
        ["  prefill 9 ", "  decode 2 after 4 ", " % of bandwidth", " % of arithmetic", "  projection "]
    {
        assert!(outcome.stdout.contains(line), "{line:?} is not in\n{}", outcome.stdout);
    }
    assert_eq!(outcome.stderr, "");
    let page = std::fs::read_to_string(machine.path().join("bench.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(
        page.starts_with("<!doctype html>")
            && !page.contains("http://localhost")
            && !page.contains("<script")
    );
    let outcome = bench(&machine, &["--threads", "1", "--csv"]);
    let fields: Vec<usize> = outcome.stdout.lines().map(|line| line.split(',').count()).collect();
    // A header, bandwidth, arithmetic, load, private memory, and both lengths read and decoded after.
    assert_eq!(fields, [10; 9], "{}", outcome.stdout);
}

#[test]
fn a_bundle_without_a_decode_shape_reads_all_weights_for_a_token_too() {
    let machine = Machine::new();
    let row = |flags: &[&str]| {
        let outcome = bench(&machine, &[&["--threads", "1", "--profile", "--json"], flags].concat());
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        report["rows"][0].clone()
    };
    let (usual, prefill_only) = (row(&[]), row(&["--prefill-only"]));
    assert_eq!(positive(&prefill_only["weight_bytes"]), positive(&usual["weight_bytes"]));
    let kinds = prefill_only["profile"].as_array().unwrap();
    assert!(kinds.iter().any(|kind| kind["kind"] == "attention"), "{kinds:?}");
}

#[test]
fn work_that_a_bundle_cannot_do_is_refused_with_the_flag_to_change() {
    let machine = Machine::new();
    let model = ["bench", "--model", "demo", "--ctx", "64", "--prompt-tokens", "40"];
    let outcome = machine.run(&[&model[..], &["--gen", "30", "--quiet"]].concat());
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("70 tokens do not fit the context of"), "{}", outcome.stderr);
    let converted = machine.run(&["convert", "--model", "demo", "--ctx", "64", "--out", "plain"]);
    assert_eq!(converted.code, 0, "{}", converted.stderr);
    let bundle = ["bench", "--bundle", "plain", "--prompt-tokens", "4", "--gen", "2", "--spec", "--quiet"];
    let outcome = machine.run(&bundle);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("has no pass that checks drafts"), "{}", outcome.stderr);
    let outcome = machine.run(&[&model[..], &["--spec", "--prefill-only"]].concat());
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("--spec does not go with --prefill-only"), "{}", outcome.stderr);
}
