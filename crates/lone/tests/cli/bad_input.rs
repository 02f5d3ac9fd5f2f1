//! Whatever is wrong with what was given: one clear error, exit code 1, nothing written.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::checkpoint::Checkpoint;
use crate::machine::{Machine, Outcome, flip_last_byte, model, names};

/// What an error must say, in this order.
fn assert_refused(outcome: &Outcome, expected: &[&str]) {
    let Outcome { code, stdout, stderr } = outcome;
    assert_eq!((*code, stdout.as_str()), (1, ""), "{stderr}");
    let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{stderr}");
    let mut rest = stderr.as_str();
    for part in expected {
        let at = rest.find(part);
        rest = &rest[at.unwrap_or_else(|| panic!("no `{part}` (in this order) in: {stderr}"))..];
    }
}

/// Converts a checkpoint that `damage` has changed.
fn convert_damaged(damage: impl FnOnce(&Checkpoint)) -> Outcome {
    let machine = Machine::new();
    damage(&Checkpoint::copy_to(machine.path().join("checkpoint")));
    let outcome = machine.run(&["convert", "--model", "checkpoint", "--out", "bundle"]);
    assert_eq!(names(machine.path()), ["checkpoint"], "something was written");
    outcome
}

const W1: &str = "model.layers.2.feed_forward.w1.weight";

#[test]
fn a_missing_file() {
    let outcome = convert_damaged(|checkpoint| std::fs::remove_file(checkpoint.path("config.json")).unwrap());
    assert_refused(&outcome, &["checkpoint is not a checkpoint", "no config.json"]);
    let outcome =
        convert_damaged(|checkpoint| std::fs::remove_file(checkpoint.path("model.safetensors")).unwrap());
    assert_refused(&outcome, &["no model.safetensors", "in checkpoint", "hint: "]);
}

#[test]
fn a_pipe_where_a_file_should_be() {
    for (name, refusal) in [
        ("config.json", "it has no config.json"),
        ("tokenizer.json", "tokenizer.json: not a regular file"),
        ("chat_template.jinja", "chat_template.jinja: not a regular file"),
    ] {
        let outcome = convert_damaged(|checkpoint| {
            std::fs::remove_file(checkpoint.path(name)).ok();
            assert!(
                std::process::Command::new("mkfifo").arg(checkpoint.path(name)).status().unwrap().success()
            );
        });
        assert_refused(&outcome, &[refusal]);
    }
}

#[test]
fn a_truncated_safetensors_file() {
    let cut = |bytes: u64| {
        move |checkpoint: &Checkpoint| {
            let file = OpenOptions::new().write(true).open(checkpoint.path("model.safetensors")).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len(bytes.min(length - 1)).unwrap();
        }
    };
    for bytes in [0, 5, 100, u64::MAX] {
        let outcome = convert_damaged(cut(bytes));
        assert_refused(&outcome, &["checkpoint/model.safetensors", "truncated or damaged"]);
    }
}

#[test]
fn a_tensor_of_the_wrong_shape() {
    let outcome = convert_damaged(|checkpoint| {
        checkpoint.edit_tensors(|tensors| tensors.get_mut(W1).unwrap().shape = vec![80, 128]);
    });
    assert_refused(&outcome, &[W1, "expected shape", "160", "64", "found [80, 128]"]);
}

#[test]
fn names_of_tensors_are_shown_and_not_obeyed() {
    let machine = Machine::new();
    let checkpoint = Checkpoint::copy_to(machine.path().join("checkpoint"));
    checkpoint.edit_tensors(|tensors| {
        let tensor = tensors[W1].clone();
        tensors.insert("a\x1b[2J\u{9b}b".into(), tensor);
    });
    let outcome = machine.run(&["convert", "--model", "checkpoint", "--out", "bundle"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("a^[[2J\u{fffd}b") && !outcome.stderr.contains('\x1b'),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_missing_tensor() {
    let outcome =
        convert_damaged(|checkpoint| checkpoint.edit_tensors(|tensors| drop(tensors.remove(W1).unwrap())));
    assert_refused(&outcome, &[W1, "missing"]);
}

#[test]
fn an_unknown_model_or_layer_kind() {
    let outcome =
        convert_damaged(|checkpoint| checkpoint.edit_config(|config| config["model_type"] = "llama".into()));
    assert_refused(&outcome, &["model_type", "\"llama\""]);
    let outcome = convert_damaged(|checkpoint| {
        checkpoint.edit_config(|config| {
            config["layer_types"] = vec!["conv", "mamba", "conv", "full_attention"].into();
        });
    });
    assert_refused(&outcome, &["layer_types[1]", "\"mamba\""]);
}

#[test]
fn weights_that_fp16_cannot_hold() {
    for (element, expected) in [(f32::NAN, "2 elements that are not finite"), (1e6, "2 beyond ±65504")] {
        let bf16 = (element.to_bits() >> 16) as u16;
        let outcome = convert_damaged(|checkpoint| {
            checkpoint.edit_tensors(|tensors| {
                let bytes = &mut tensors.get_mut(W1).unwrap().bytes;
                for at in [0, 128] {
                    bytes[at..at + 2].copy_from_slice(&bf16.to_le_bytes());
                }
            });
        });
        assert_refused(&outcome, &[W1, "model.safetensors", expected]);
    }
}

/// A bundle of a small checkpoint, to be damaged.
fn with_bundle() -> Machine {
    let machine = Machine::new();
    let model = model("micro/lfm3-window8");
    let outcome = machine.run(&[
        "convert",
        "--model",
        model.to_str().unwrap(),
        "--out",
        "bundle",
        "--ctx",
        "32",
        "--prefill",
        "8",
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    machine
}

fn run_bundle(machine: &Machine) -> Outcome {
    machine.run(&["run", "--bundle", "bundle", "--prompt-ids", "1,5,7", "--max-new-tokens", "2"])
}

#[test]
fn a_prompt_longer_than_the_context_or_of_unknown_tokens() {
    let machine = with_bundle();
    let long = vec!["1"; 33].join(",");
    let outcome = machine.run(&["run", "--bundle", "bundle", "--prompt-ids", &long]);
    assert_refused(&outcome, &["the prompt has 33 tokens, and the context holds 32", "hint: ", "--ctx 64"]);
    let outcome = machine.run(&["run", "--bundle", "bundle", "--prompt-ids", "1,99999"]);
    assert_refused(&outcome, &["token 1 is 99999", "vocabulary has 300"]);
}

#[test]
fn text_for_a_model_without_a_tokenizer() {
    let outcome = with_bundle().run(&["run", "--bundle", "bundle", "--prompt", "Hello"]);
    assert_refused(&outcome, &["lfm3-window8 has no tokenizer", "hint: --prompt-ids"]);
}

#[test]
fn a_directory_that_is_no_bundle() {
    let machine = Machine::new();
    for command in ["run", "inspect"] {
        let outcome = machine.lone(&[command, "--bundle", "nowhere"]).write_stdin("x").output().unwrap();
        let stderr = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(1), "{command}: {stderr}");
        assert!(stderr.starts_with("error: nowhere is not a bundle"), "{command}: {stderr}");
    }
}

#[test]
fn a_bundle_or_an_empty_directory_for_a_checkpoint() {
    let machine = with_bundle();
    std::fs::create_dir(machine.path().join("empty")).unwrap();
    let run = |model| machine.run(&["run", "--model", model, "--prompt", "Hello"]);
    assert_refused(&run("bundle"), &["bundle is a bundle", "hint: --bundle bundle"]);
    assert_refused(&run("empty"), &["empty is not a checkpoint", "config.json"]);
    assert_eq!(names(machine.path()), ["bundle", "empty"], "something was written");
}

#[test]
fn a_bundle_of_a_newer_schema() {
    let machine = with_bundle();
    let path = machine.path().join("bundle/bundle.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"schema\": 1", "\"schema\": 999", 1)).unwrap();
    assert_refused(&run_bundle(&machine), &["schema 999", "reads up to 1", "update lone"]);
}

#[test]
fn a_tampered_weight_file_is_found_by_inspect_check() {
    let machine = with_bundle();
    let outcome = machine.run(&["inspect", "--bundle", "bundle", "--check"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.ends_with("files are as written.\n"), "{}", outcome.stdout);

    let name = "chunk_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin";
    flip_last_byte(&machine.path().join("bundle").join(name));
    let outcome = machine.run(&["inspect", "--bundle", "bundle", "--check"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains(name), "{}", outcome.stderr);
    let outcome = machine.run(&["inspect", "--bundle", "bundle", "--check", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["check"]["changed"][0]["path"], name);
}

#[test]
fn every_file_that_is_not_as_written_is_listed() {
    let machine = with_bundle();
    let bundle = machine.path().join("bundle");
    let (hash, size, missing) = (
        "chunk_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin",
        "embeddings.bin",
        "head_00.mlpackage/Manifest.json",
    );
    flip_last_byte(&bundle.join(hash));
    OpenOptions::new().write(true).open(bundle.join(size)).unwrap().set_len(10).unwrap();
    std::fs::remove_file(bundle.join(missing)).unwrap();

    let outcome = machine.run(&["inspect", "--bundle", "bundle", "--check"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    for (file, damage) in [(hash, "has another hash"), (size, "has 10 bytes"), (missing, "is missing")] {
        assert!(outcome.stdout.contains(&format!("  {file}  {damage}")), "{}", outcome.stdout);
        assert!(outcome.stderr.contains(file), "{}", outcome.stderr);
    }
    let outcome = machine.run(&["inspect", "--bundle", "bundle", "--check", "--json"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let changed = report["check"]["changed"].as_array().unwrap();
    let mut found: Vec<_> = changed
        .iter()
        .map(|file| [&file["path"], &file["damage"]].map(|text| text.as_str().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [[hash, "hash"], [size, "size"], [missing, "missing"]]);
}

#[test]
fn weights_that_make_no_numbers_are_damage_and_no_fault_of_lone() {
    let machine = with_bundle();
    let embeddings = machine.path().join("bundle/embeddings.bin");
    let nan = [0x00, 0x7e].repeat(std::fs::metadata(&embeddings).unwrap().len() as usize / 2);
    overwrite(&embeddings, 0, &nan);
    let expected = ["returned NaN among its logits", "weights are damaged", "hint: ", "--check"];
    assert_refused(&run_bundle(&machine), &expected);
}

#[test]
fn other_damage_to_a_package_is_found_at_load() {
    let model = "chunk_00.mlpackage/Data/com.apple.CoreML/model.mlmodel";
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 7] = [
        ("chunk_00.mlpackage/Manifest.json", |path| std::fs::remove_file(path).unwrap()),
        (model, |path| File::create(path).map(drop).unwrap()),
        (model, |path| overwrite(path, 0, &[0xff; 64])),
        // Whatever the byte means.
        (model, flip_last_byte),
        ("head_00.mlpackage/Manifest.json", flip_last_byte),
        // The first record's magic number, behind the file's header.
        ("head_00.mlpackage/Data/com.apple.CoreML/weights/weight.bin", |path| overwrite(path, 64, &[0; 4])),
        ("embeddings.bin", |path| OpenOptions::new().write(true).open(path).unwrap().set_len(10).unwrap()),
    ];
    for (name, damage) in damages {
        let machine = with_bundle();
        damage(&machine.path().join("bundle").join(name));
        let outcome = run_bundle(&machine);
        let package = name.split('/').next().unwrap();
        assert_refused(&outcome, &[package]);
    }
}

#[test]
#[cfg(not(target_os = "macos"))]
fn a_backend_that_is_not_there() {
    let outcome =
        with_bundle().run(&["run", "--bundle", "bundle", "--prompt-ids", "1", "--backend", "coreml"]);
    assert_refused(&outcome, &["Core ML", "hint: --backend cpu"]);
    let machine = Machine::new();
    let outcome = machine.run(&["bench", "--model", "demo", "--backend", "coreml"]);
    assert_refused(&outcome, &["Core ML", "hint: --backend cpu"]);
    assert!(!machine.path().join("cache/bundles").exists(), "it was converted before it was refused");
}

#[test]
fn rounding_where_nothing_rounds() {
    let flags = ["run", "--bundle", "bundle", "--prompt-ids", "1", "--backend", "reference", "--fast-int16"];
    let outcome = with_bundle().run(&flags);
    assert_refused(&outcome, &["--fast-int16 is for the CPU backend", "hint: --backend cpu"]);
}

#[test]
fn a_backend_in_the_environment_that_is_none() {
    let machine = Machine::new();
    let outcome = machine
        .outcome(machine.lone(&["run", "--model", "demo", "--prompt", "x"]).env("LONE_BACKEND", "gpu"));
    assert_refused(&outcome, &["LONE_BACKEND is `gpu`", "hint: auto, cpu, "]);
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}
