//! `lone inspect`: what it shows of a bundle, a checkpoint and a package.

use serde_json::{Value, json};

use crate::machine::{Machine, Outcome, model};

fn with_bundle() -> Machine {
    let machine = Machine::new();
    let flags = ["--ctx", "64", "--prefill", "16", "--spec-drafts", "3"];
    let outcome = machine.run(&[&["convert", "--model", "demo", "--out", "bundle"][..], &flags].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    machine
}

fn parsed(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn a_bundle_shows_its_programs_caches_and_provenance() {
    let outcome = with_bundle().run(&["inspect", "--bundle", "bundle"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(outcome.stdout);
}

#[test]
fn where_a_bundle_runs_is_shown_if_a_mac_has_said_it() {
    let machine = with_bundle();
    let path = machine.path().join("bundle/bundle.json");
    let mut bundle: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let left = |name: &str, operator: &str| json!({"name": name, "operator": operator, "device": "cpu"});
    let mut costly = left("k_1_new", "transpose");
    costly["cost"] = json!(0.125);
    let many = (0..8).map(|i| left(&format!("x_{i}"), "concat")).chain([costly]);
    bundle["placement"] = json!({
        "system": "Apple M1, macOS 15.1",
        "compute_units": "cpu_and_ne",
        "functions": [
            {"package": "chunk_00.mlpackage", "function": "decode", "neural_engine": 191, "elsewhere": many.collect::<Value>()},
            {"package": "head_00.mlpackage", "function": "decode", "neural_engine": 9, "elsewhere": []},
        ],
    });
    std::fs::write(&path, bundle.to_string()).unwrap();
    let shown = machine.run(&["inspect", "--bundle", "bundle"]).stdout;
    let section = &shown[shown.find("\nPlacement").unwrap()..];
    insta::assert_snapshot!(section);
    let report = parsed(&machine.run(&["inspect", "--bundle", "bundle", "--json"]));
    assert_eq!(report["placement"], bundle["placement"]);
}

#[test]
fn the_numbers_of_a_bundle_add_up() {
    let machine = with_bundle();
    let report = parsed(&machine.run(&["inspect", "--bundle", "bundle", "--json"]));
    let graphs = report["graphs"].as_array().unwrap();
    let packages: u64 = graphs.iter().map(|graph| graph["bytes"].as_u64().unwrap()).sum();
    let embeddings = report["embeddings"]["bytes"].as_u64().unwrap();
    assert!(packages + embeddings < report["bytes"].as_u64().unwrap());
    let weights = machine.path().join("bundle/chunk_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin");
    assert!(graphs[0]["bytes"].as_u64().unwrap() > std::fs::metadata(weights).unwrap().len());
    // 2 full-attention layers, keys and values, 2 heads of 32, 2 bytes each.
    assert_eq!(report["caches"]["bytes_per_token"], 2 * 2 * 2 * 32 * 2);
    let session = &report["caches"]["sessions"][0];
    // Besides, a ring of 32 rows and 5 windows of 6 inputs of 128 channels.
    let rings = 2 * 2 * 32 * 32 * 2 + 5 * 6 * 128 * 2;
    assert_eq!((&session["ctx"], &session["bytes"]), (&64.into(), &(512 * 64 + rings).into()));
    let roles: Vec<&Value> =
        graphs[0]["functions"].as_array().unwrap().iter().map(|function| &function["role"]).collect();
    assert_eq!(roles, ["decode", "prefill", "verify"]);
}

#[test]
fn a_checkpoint_shows_what_its_configuration_says() {
    let model = model("micro/lfm3-plain-sharded-f16");
    let machine = Machine::new();
    std::os::unix::fs::symlink(model, machine.path().join("sharded")).unwrap();
    let outcome = machine.run(&["inspect", "--model", "sharded"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(outcome.stdout);
}

#[test]
fn a_package_shows_its_functions() {
    let outcome = with_bundle().run(&["inspect", "--package", "bundle/head_00.mlpackage"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(outcome.stdout);
}
