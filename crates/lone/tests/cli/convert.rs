//! `lone convert`: what it says, what it leaves, and what it leaves when it is stopped.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::checkpoint::Checkpoint;
use crate::machine::{Machine, model, names, wait_until};

const MICRO: &str = "micro/lfm3-window8";

fn micro() -> String {
    model(MICRO).to_str().unwrap().to_owned()
}

#[test]
fn a_checkpoint_becomes_a_bundle_and_the_next_command_is_shown() {
    let machine = Machine::new();
    let outcome = machine.run(&["convert", "--model", "demo", "--out", "made/here/bundle"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    insta::assert_snapshot!(outcome.masked().stdout, @"made/here/bundle: [N] MB in [N] s, [N] MB/s");
    insta::assert_snapshot!(outcome.stderr, @r#"try it: lone run --bundle made/here/bundle --chat --prompt "Hello""#);
    assert_eq!(names(&machine.path().join("made/here")), ["bundle"]);
    assert!(machine.path().join("made/here/bundle/bundle.json").is_file());
}

#[test]
fn the_summary_can_be_had_as_json() {
    let machine = Machine::new();
    let outcome = machine.run(&["convert", "--model", &micro(), "--out", "bundle", "--json", "--quiet"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let summary: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let keys: Vec<&String> = summary.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["bundle", "model", "bytes", "seconds", "bytes_per_second", "packages", "warnings"]);
    assert_eq!(summary["model"], "lfm3-window8");
    assert!(summary["warnings"][0].as_str().unwrap().contains("tokenizer.json"), "{summary}");
}

#[test]
fn a_directory_that_exists_needs_force_and_is_untouched_without() {
    let machine = Machine::new();
    let convert = |flags: &[&str]| {
        machine
            .run(&[&["convert", "--model", &micro(), "--out", "bundle", "--ctx", "64"][..], flags].concat())
    };
    assert_eq!(convert(&[]).code, 0);
    let before = std::fs::read(machine.path().join("bundle/bundle.json")).unwrap();
    let outcome = convert(&["--decode-only"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    error: bundle exists; --force replaces a bundle
     hint: --force
    ");
    assert_eq!(std::fs::read(machine.path().join("bundle/bundle.json")).unwrap(), before);
    assert_eq!(convert(&["--decode-only", "--force"]).code, 0);
    assert_ne!(std::fs::read(machine.path().join("bundle/bundle.json")).unwrap(), before);
    assert_eq!(names(machine.path()), ["bundle"]);
}

#[test]
fn force_does_not_replace_what_is_no_bundle() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path().join("precious")).unwrap();
    std::fs::write(machine.path().join("precious/thesis.txt"), "text").unwrap();
    for (out, force) in [("precious", false), ("precious", true), ("precious/thesis.txt", false)] {
        let flags = ["convert", "--model", &micro(), "--out", out, "--force"];
        let outcome = machine.run(&flags[..flags.len() - usize::from(!force)]);
        assert_eq!(outcome.code, 1, "{}", outcome.stdout);
        assert!(outcome.stderr.contains("is no bundle"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("--force"), "{}", outcome.stderr);
    }
    assert_eq!(names(&machine.path().join("precious")), ["thesis.txt"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_nothing_behind() {
    let machine = Machine::new();
    // Large enough that writing it takes a while.
    Checkpoint::copy_to(machine.path().join("large")).grow_vocabulary(400_000);
    std::fs::create_dir(machine.path().join("out")).unwrap();
    let out = machine.path().join("out");
    let mut child = machine
        .process()
        .args(["convert", "--model", "large", "--out", "out/bundle"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| !names(&out).is_empty());
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let status = child.wait().unwrap();
    let stderr = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert_eq!(stderr.lines().last(), Some("interrupted: nothing was written"));
    assert!(names(&out).is_empty(), "{:?}", names(&out));
}

#[test]
#[cfg(unix)]
fn a_limit_on_file_sizes_is_an_error_and_leaves_nothing_behind() {
    let machine = Machine::new();
    let lone = machine.program();
    let script = format!("ulimit -f 100; exec {} convert --model demo --out out/bundle", lone.display());
    let prepared = machine.run(&["inspect", "--model", "demo"]);
    assert_eq!(prepared.code, 0, "{}", prepared.stderr);
    let outcome = machine.outcome(&mut machine.shell(&script));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("error: ").count(), 1, "{}", outcome.stderr);
    assert!(!machine.path().join("out/bundle").exists());
    assert!(!machine.path().join("out").exists() || names(&machine.path().join("out")).is_empty());
}

/// Needs the right to mount, which tests have in a container and CI has as root; elsewhere the limit above stands for
/// it.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_named_with_what_was_needed_and_leaves_nothing_behind() {
    let machine = Machine::new();
    let disk = machine.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        return;
    }
    let outcome = machine.run(&["convert", "--model", "demo", "--out", "disk/bundle"]);
    let left = names(&disk);
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(outcome.stderr.starts_with("error: no space left: the bundle in disk"), "{}", outcome.stderr);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn conversion_flags_reach_the_bundle() {
    let machine = Machine::new();
    let flags =
        ["--ctx", "128", "--prefill", "16", "--spec-drafts", "3", "--layers-per-model", "2", "--no-ring"];
    let outcome = machine.run(
        &[&["convert", "--model", &micro(), "--out", "bundle", "--head-chunks", "2"][..], &flags].concat(),
    );
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let text = std::fs::read(machine.path().join("bundle/bundle.json")).unwrap();
    let bundle: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let written = &bundle["provenance"]["flags"];
    for (flag, value) in
        [("ctx", 128), ("prefill", 16), ("spec-drafts", 3), ("layers-per-model", 2), ("head-chunks", 2)]
    {
        assert_eq!(written[flag], value, "{flag}");
    }
    assert_eq!(written["ring"], false);
    let heads = names(&machine.path().join("bundle")).into_iter().filter(|name| name.starts_with("head_"));
    assert_eq!(heads.count(), 2);
    assert!(Path::new(&machine.path().join("bundle/embeddings.bin")).is_file());
}
