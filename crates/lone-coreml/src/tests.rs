//! The backend on a framework played by the CPU engine: results, laziness, the cache, and every call failing.

use std::fs;
use std::path::{Path, PathBuf};

use half::f16;
use lone_mil::package::{Metadata, PackageWriter};
use lone_mil::{
    Backend, BackendError, Function, FunctionBuilder, Keep, LoadOptions, Model, Program, TensorMut,
    TensorRef, TensorType,
};
use lone_testing::{Tolerances, run_suite};

use crate::Device;
use crate::fake::{Call, Fake};

#[cfg(target_os = "macos")]
mod system;

/// Rows of the `past` input: with 64 columns, more than a page.
const ROWS: usize = 128;

/// `y = x + x`, `z = exp(y)` for `columns` columns, and `sum = past + past`.
fn function(name: &str, columns: usize) -> Function {
    let mut b = FunctionBuilder::new(name);
    let mut build = || {
        let x = b.input("x", TensorType::f16([1, 3, 1, columns]))?;
        let past = b.input("past", TensorType::f16([1, 1, ROWS, 64]))?;
        let y = b.add(x, x)?;
        let y = b.name(y, "y")?;
        let z = b.exp(y)?;
        let z = b.name(z, "z")?;
        let sum = b.add(past, past)?;
        let sum = b.name(sum, "sum")?;
        b.output(z)?;
        b.output(sum)
    };
    build().unwrap();
    b.finish().unwrap()
}

/// A package of a `decode` and a `prefill` function in `dir`, and a directory for compiled programs.
fn package(dir: &Path) -> (PathBuf, PathBuf) {
    let path = dir.join("p.mlpackage");
    let functions = vec![function("decode", 1), function("prefill", 5)];
    let program = Program { functions, default_function: "decode".into() };
    PackageWriter::create(&path).unwrap().finish(&program, &Metadata::default()).unwrap();
    (path, dir.join("cache"))
}

fn lazily() -> LoadOptions {
    LoadOptions { lazy: vec!["prefill".into()], ..LoadOptions::default() }
}

/// Runs `function` on x = 0, 1, 2, … / 8 and checks what comes out.
fn run(model: &mut dyn Model, function: &str, past: &[f16]) -> Result<(), BackendError> {
    let columns = if function == "decode" { 1 } else { 5 };
    let x: Vec<f16> = (0..3 * columns).map(|i| f16::from_f64(i as f64 / 8.0)).collect();
    let (mut z, mut sum) = (vec![f16::ZERO; x.len()], vec![f16::ZERO; past.len()]);
    let mut outputs = [TensorMut::F16(&mut z), TensorMut::F16(&mut sum)];
    model.run(function, &[TensorRef::F16(&x), TensorRef::F16(past)], &mut outputs)?;
    for (x, z) in x.iter().zip(&z) {
        let expected = f16::from_f64((2.0 * x.to_f64()).exp());
        assert!((z.to_f32() - expected.to_f32()).abs() <= 0.002 * expected.to_f32(), "exp(2 * {x}) = {z}");
    }
    assert!(past.iter().zip(&sum).all(|(past, sum)| sum.to_f32() == 2.0 * past.to_f32()));
    Ok(())
}

fn past(value: f32) -> Vec<f16> {
    vec![f16::from_f32(value); ROWS * 64]
}

#[test]
fn every_operation_gives_what_it_should_through_padded_arrays() {
    let cache = tempfile::tempdir().unwrap();
    let report = run_suite(&Fake::new().backend(cache.path()), &Tolerances::CPU);
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.passed.len() > 5 * report.unsupported.len(), "{report}");
}

#[test]
fn results_are_taken_from_wherever_the_framework_put_them() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    for elsewhere in [false, true] {
        let fake = Fake::new();
        fake.script().writes_elsewhere = elsewhere;
        let mut model = fake.backend(&cache).load(&package, &LoadOptions::default()).unwrap();
        for value in [1.0, 2.0, 3.0] {
            run(&mut *model, "prefill", &past(value)).unwrap();
        }
    }
}

#[test]
fn whole_pages_are_read_where_they_lie() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let mut model = fake.backend(&cache).load(&package, &lazily()).unwrap();
    let memory = vec![f16::ONE; ROWS * 64 + 16_384];
    let start = memory.as_ptr().align_offset(16_384);
    run(&mut *model, "decode", &memory[start..start + ROWS * 64]).unwrap();
    assert_eq!(fake.script().in_place, 1, "`past` is a page, `x` is not");
    run(&mut *model, "decode", &memory[start + 1..start + 1 + ROWS * 64]).unwrap();
    assert_eq!(fake.script().in_place, 1, "it does not begin with a page");
    run(&mut *model, "decode", &memory[start..start + ROWS * 64]).unwrap();
    assert_eq!(fake.script().in_place, 2);
}

#[test]
fn lazy_functions_are_loaded_when_they_first_run() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let mut model = fake.backend(&cache).load(&package, &lazily()).unwrap();
    assert_eq!(fake.script().loaded, ["decode"]);
    assert_eq!(model.signature("prefill").unwrap().inputs.len(), 2, "signatures do not wait");
    for _ in 0..2 {
        run(&mut *model, "prefill", &past(1.0)).unwrap();
    }
    assert_eq!(fake.script().loaded, ["decode", "prefill"]);
}

#[test]
fn a_package_is_compiled_once_until_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    for _ in 0..2 {
        fake.backend(&cache).load(&package, &LoadOptions::default()).unwrap();
    }
    assert_eq!(fake.calls(Call::Compile), 1);
    fs::write(package.join("Data/com.apple.CoreML/note"), "changed").unwrap();
    fake.backend(&cache).load(&package, &LoadOptions::default()).unwrap();
    assert_eq!(fake.calls(Call::Compile), 2);
}

#[test]
fn a_damaged_compiled_program_is_compiled_again_once() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let backend = fake.backend(&cache);
    backend.load(&package, &LoadOptions::default()).unwrap();
    fs::write(entry(&cache).join("model.mlmodelc/Manifest.json"), "damaged").unwrap();
    let mut model = backend.load(&package, &LoadOptions::default()).unwrap();
    assert_eq!(fake.calls(Call::Compile), 2);
    run(&mut *model, "decode", &past(1.0)).unwrap();
}

/// The one compiled program in `cache`.
fn entry(cache: &Path) -> PathBuf {
    let entries = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let mut entries = entries.filter(|path| path.join("model.mlmodelc").exists());
    let entry = entries.next().unwrap();
    assert_eq!(entries.next(), None);
    entry
}

#[test]
fn what_a_system_refuses_is_compiled_again_by_another_one_only() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let load = || fake.backend(&cache).load(&package, &lazily()).map(drop);
    let compiled = || fake.calls(Call::Compile);
    load().unwrap();
    fake.fail(Call::Load, 9);
    for _ in 0..3 {
        load().unwrap_err();
    }
    assert_eq!(compiled(), 2, "it may have been damaged, once");
    fake.script().system = "another".into();
    for _ in 0..2 {
        load().unwrap_err();
    }
    assert_eq!(compiled(), 3);
    fake.fail(Call::Load, 0);
    load().unwrap();
    assert_eq!(compiled(), 3);

    fake.fail(Call::Plan, 9);
    for _ in 0..2 {
        fake.backend(&cache).placement(&package).unwrap_err();
    }
    assert_eq!(compiled(), 4, "a plan is another matter");
    fake.fail(Call::Load, 9);
    load().unwrap_err();
    assert_eq!(compiled(), 4, "what was refused is still known");
}

#[test]
fn what_is_in_the_way_of_a_compiled_program_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    fake.backend(&cache).load(&package, &lazily()).unwrap();
    let entry = entry(&cache);
    fs::remove_dir_all(entry.join("model.mlmodelc")).unwrap();
    fs::write(entry.join(".DS_Store"), "").unwrap();
    fake.backend(&cache).load(&package, &lazily()).unwrap();
    assert!(entry.join("model.mlmodelc").is_dir() && !entry.join(".DS_Store").exists());
}

#[test]
fn what_killed_processes_left_and_what_nobody_used_for_long_is_removed_unless_it_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let [old, new, held] = ["0", "1", "2"].map(|digit| digit.repeat(32));
    let locks = cache.join("locks");
    fs::create_dir_all(&locks).unwrap();
    let lock = |key: &str| {
        let file = fs::File::create(locks.join(key)).unwrap();
        let days = if key == new { 29 } else { 31 };
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(24 * days)).unwrap();
        file
    };
    let files = [&old, &new, &held].map(|key| lock(key));
    files[2].lock_shared().unwrap();
    for key in [&old, &new, &held] {
        fs::create_dir_all(cache.join(key).join("model.mlmodelc")).unwrap();
        fs::create_dir_all(cache.join(format!("compiling-{key}-x/result"))).unwrap();
    }
    Fake::new().backend(&cache).load(&package, &lazily()).unwrap();
    let is_there = |name: &str| cache.join(name).exists();
    assert_eq!([&old, &new, &held].map(|key| is_there(key)), [false, true, true]);
    let unfinished = [&old, &new, &held].map(|key| is_there(&format!("compiling-{key}-x")));
    assert_eq!(unfinished, [false, false, true]);
}

#[test]
fn two_that_need_the_same_program_compile_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fake.backend(&cache).load(&package, &lazily()).map(drop).unwrap());
        }
    });
    assert_eq!(fake.calls(Call::Compile), 1);
}

#[test]
fn a_program_that_never_loads_is_an_error_that_names_package_and_function() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    fake.fail(Call::Load, 9);
    let error = fake.backend(&cache).load(&package, &LoadOptions::default()).err().unwrap();
    let expected =
        format!("Core ML cannot load function `decode` of {}: Load was made to fail", package.display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(fake.calls(Call::Load), 1, "what was just compiled is not compiled again");
}

#[test]
fn a_compiler_that_fails_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    fake.fail(Call::Compile, 1);
    let error = fake.backend(&cache).load(&package, &LoadOptions::default()).err().unwrap();
    let expected = format!("Core ML cannot compile {}: Compile was made to fail", package.display());
    assert_eq!(error.to_string(), expected);
    let left: Vec<_> = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "known" || name == "locks"), "{left:?}");
    fake.backend(&cache).load(&package, &LoadOptions::default()).unwrap();
}

#[test]
fn arrays_that_cannot_be_made_are_named_by_port() {
    for (call, port) in [(Call::Array, "z"), (Call::Backings, "all outputs")] {
        let dir = tempfile::tempdir().unwrap();
        let (package, cache) = package(dir.path());
        let fake = Fake::new();
        fake.fail(call, 1);
        let error = fake.backend(&cache).load(&package, &LoadOptions::default()).err().unwrap();
        let expected = format!("no array for `{port}` of function `decode`: {call:?} was made to fail");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_pass_that_fails_once_is_repeated_on_the_function_loaded_anew() {
    for call in [Call::Predict, Call::Read, Call::Write, Call::Array] {
        let dir = tempfile::tempdir().unwrap();
        let (package, cache) = package(dir.path());
        let fake = Fake::new();
        let mut model = fake.backend(&cache).load(&package, &lazily()).unwrap();
        fake.fail(call, 1);
        run(&mut *model, "decode", &past(1.0)).unwrap_or_else(|error| panic!("{call:?}: {error}"));
        assert_eq!(fake.script().loaded, ["decode", "decode"], "{call:?}");
    }
}

#[test]
fn recoveries_are_told_and_a_function_that_needs_too_many_fails_until_it_is_loaded_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let (tell, told) = std::sync::mpsc::channel();
    let backend = fake.backend(&cache).with_listener(move |line| tell.send(line.to_owned()).unwrap());
    let mut model = backend.load(&package, &lazily()).unwrap();
    let mut pass = |failures| {
        fake.fail(Call::Predict, failures);
        run(&mut *model, "decode", &past(1.0))
    };
    for _ in 0..3 {
        pass(1).unwrap();
        pass(0).unwrap();
    }
    let line = "`decode` failed, and ran when it was loaded anew: Predict was made to fail";
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [line; 3]);
    let error = pass(1).unwrap_err().to_string();
    assert_eq!(
        error,
        "`decode` failed: Predict was made to fail; 3 times lately it was loaded anew after a failure"
    );
    assert_eq!(fake.calls(Call::Load), 4);
    pass(0).unwrap();
    assert_eq!(fake.calls(Call::Load), 5);
}

#[test]
fn what_failed_first_is_told_with_what_failed_when_the_function_was_loaded_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let mut model = fake.backend(&cache).load(&package, &lazily()).unwrap();
    fake.fail(Call::Predict, 1);
    fake.fail(Call::Load, 2);
    let error = run(&mut *model, "decode", &past(1.0)).unwrap_err().to_string();
    assert!(error.starts_with("`decode` failed: Core ML cannot load function `decode` of "), "{error}");
    assert!(error.ends_with("; before it was loaded anew: Predict was made to fail"), "{error}");
}

#[test]
fn a_pass_that_fails_twice_is_an_error_and_the_next_one_may_succeed() {
    for (call, expected) in [
        (Call::Predict, "`decode` failed: Predict was made to fail"),
        (Call::Write, "`decode` failed: input `x`: Write was made to fail"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (package, cache) = package(dir.path());
        let fake = Fake::new();
        let mut model = fake.backend(&cache).load(&package, &lazily()).unwrap();
        fake.fail(call, 2);
        assert_eq!(run(&mut *model, "decode", &past(1.0)).unwrap_err().to_string(), expected);
        run(&mut *model, "decode", &past(1.0)).unwrap();
    }
}

#[test]
fn values_that_are_kept_follow_the_outputs_and_the_package_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let model_file = package.join("Data/com.apple.CoreML/model.mlmodel");
    let before = fs::read(&model_file).unwrap();
    let keep = |value: &str| Keep { function: "decode".into(), value: value.into() };
    let options = LoadOptions { keep: vec![keep("y"), keep("z")], ..LoadOptions::default() };
    let mut model = Fake::new().backend(&cache).load(&package, &options).unwrap();
    let names = |function: &str| {
        let outputs = &model.signature(function).unwrap().outputs;
        outputs.iter().map(|port| port.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("decode"), names("prefill")),
        (vec!["z".into(), "sum".into(), "y".into(), "z".into()], vec!["z".into(), "sum".to_owned()])
    );
    let x = [1.0, 2.0, 3.0].map(f16::from_f32);
    let past = past(0.5);
    let (mut z, mut sum, mut y, mut again) = ([f16::ZERO; 3], past.clone(), [f16::ZERO; 3], [f16::ZERO; 3]);
    let mut outputs = [
        TensorMut::F16(&mut z),
        TensorMut::F16(&mut sum),
        TensorMut::F16(&mut y),
        TensorMut::F16(&mut again),
    ];
    model.run("decode", &[TensorRef::F16(&x), TensorRef::F16(&past)], &mut outputs).unwrap();
    assert_eq!(y, [2.0, 4.0, 6.0].map(f16::from_f32));
    assert_eq!(again, z);
    assert_eq!(fs::read(&model_file).unwrap(), before);
}

#[test]
fn what_cannot_be_kept_is_refused_before_anything_is_compiled() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let refusal = |function: &str, value: &str| {
        let keep = vec![Keep { function: function.into(), value: value.into() }];
        let options = LoadOptions { keep, ..LoadOptions::default() };
        fake.backend(&cache).load(&package, &options).err().unwrap().to_string()
    };
    assert_eq!(refusal("decode", "x"), "function `decode`, `x`: an input among the outputs is not supported");
    assert_eq!(refusal("decode", "w"), "function `decode` has no value `w`");
    assert_eq!(refusal("verify", "z"), "no function `verify`; there are: decode, prefill");
    assert_eq!(fake.calls(Call::Compile), 0);
}

#[test]
fn the_plan_names_every_operation_and_its_device() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let fake = Fake::new();
    let placements = fake.backend(&cache).placement(&package).unwrap();
    let functions: Vec<_> = placements.iter().map(|placement| placement.function.as_str()).collect();
    assert_eq!(functions, ["decode", "prefill"]);
    let ops = placements[0].ops.iter().map(|op| (op.name.as_str(), op.operator.as_str(), op.device));
    let expected = [("y", "add", Device::Cpu), ("z", "exp", Device::Cpu), ("sum", "add", Device::Cpu)];
    assert!(ops.eq(expected), "{placements:?}");

    fake.fail(Call::Plan, 2);
    let error = fake.backend(&cache).placement(&package).err().unwrap().to_string();
    assert_eq!(
        error,
        format!("Core ML has no plan for function `decode` of {}: Plan was made to fail", package.display())
    );
}
