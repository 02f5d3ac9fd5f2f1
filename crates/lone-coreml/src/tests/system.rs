//! The same on Core ML itself, which only a Mac has: what fails here is where Core ML is not what the fake takes it for.

use std::fs;
use std::path::Path;

use half::f16;
use lone_mil::{Backend, Interpreter, Keep, LoadOptions, Reference, TensorMut, TensorRef};
use lone_testing::{Tolerances, run_suite};

use super::{ROWS, entry, lazily, package, past, run};
use crate::{ComputeUnits, CoremlBackend, CoremlOptions, Device};

fn backend(units: ComputeUnits, cache: &Path) -> CoremlBackend {
    CoremlBackend::new(CoremlOptions { units, cache: cache.into() }).unwrap()
}

/// Where there is no Neural Engine, all run on the CPU.
#[test]
fn every_operation_gives_what_it_should_on_the_cpu_and_on_the_neural_engine() {
    let cache = tempfile::tempdir().unwrap();
    for units in [ComputeUnits::CpuOnly, ComputeUnits::CpuAndNeuralEngine] {
        let report = run_suite(&backend(units, cache.path()), &Tolerances::CORE_ML);
        assert!(report.failures.is_empty(), "{}: {report}", units.name());
        assert!(report.passed.len() > 5 * report.unsupported.len(), "{}: {report}", units.name());
    }
}

#[test]
fn functions_of_one_program_run_in_turn_and_lazily() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let mut model = backend(ComputeUnits::CpuOnly, &cache).load(&package, &lazily()).unwrap();
    for value in [1.0, 2.0, 3.0] {
        run(&mut *model, "prefill", &past(value)).unwrap();
        run(&mut *model, "decode", &past(value)).unwrap();
    }
}

#[test]
fn memory_is_read_where_it_lies_and_as_it_is_at_each_pass() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    for units in [ComputeUnits::CpuOnly, ComputeUnits::CpuAndNeuralEngine] {
        let mut model = backend(units, &cache).load(&package, &lazily()).unwrap();
        let mut memory = vec![f16::ZERO; ROWS * 64 + 16_384];
        let start = memory.as_ptr().align_offset(16_384);
        for value in [1.0, 2.0, 3.0] {
            let cache = &mut memory[start..start + ROWS * 64];
            cache.fill(f16::from_f32(value));
            run(&mut *model, "decode", cache).unwrap();
        }
    }
}

#[test]
fn outputs_and_kept_values_are_as_the_reference_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let keep = vec![Keep { function: "prefill".into(), value: "y".into() }];
    let options = LoadOptions { functions: vec!["prefill".into()], keep, ..LoadOptions::default() };
    let x: Vec<f16> = (0..15).map(|i| f16::from_f32(i as f32 / 8.0 - 1.0)).collect();
    let past = past(0.25);
    let computed = |backend: &dyn Backend| {
        let (mut z, mut sum, mut y) = (vec![f16::ZERO; 15], past.clone(), vec![f16::ZERO; 15]);
        let mut outputs = [TensorMut::F16(&mut z), TensorMut::F16(&mut sum), TensorMut::F16(&mut y)];
        let mut model = backend.load(&package, &options).unwrap();
        model.run("prefill", &[TensorRef::F16(&x), TensorRef::F16(&past)], &mut outputs).unwrap();
        [z, sum, y].concat()
    };
    let expected = computed(&Interpreter::<Reference>::new());
    let found = computed(&backend(ComputeUnits::CpuOnly, &cache));
    for (found, expected) in found.iter().zip(&expected) {
        let (found, expected) = (found.to_f64(), expected.to_f64());
        assert!((found - expected).abs() <= 0.002 * expected.abs(), "{found}, not {expected}");
    }
}

#[test]
fn a_plan_names_every_operation_but_the_constants() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let plans = backend(ComputeUnits::CpuOnly, &cache).placement(&package).unwrap();
    assert_eq!(plans.len(), 2);
    for plan in plans {
        let mut operators: Vec<_> = plan.ops.iter().map(|op| op.operator.as_str()).collect();
        operators.sort_unstable();
        assert_eq!(operators, ["add", "add", "exp"], "{plan:?}");
        assert!(plan.ops.iter().all(|op| matches!(op.device, Device::Cpu | Device::Unknown)), "{plan:?}");
    }
}

#[test]
fn a_program_that_was_damaged_is_compiled_again() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    drop(backend(ComputeUnits::CpuOnly, &cache).load(&package, &lazily()).unwrap());
    let compiled = entry(&cache).join("model.mlmodelc");
    for file in fs::read_dir(&compiled).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::write(file.path(), "damaged").unwrap();
    }
    let mut model = backend(ComputeUnits::CpuOnly, &cache).load(&package, &lazily()).unwrap();
    run(&mut *model, "decode", &past(1.0)).unwrap();
}

#[test]
fn a_package_that_is_none_is_refused_with_the_reasons_codes() {
    let dir = tempfile::tempdir().unwrap();
    let (package, cache) = package(dir.path());
    let compiled = cache.join("x.mlmodelc");
    fs::write(package.join("Data/com.apple.CoreML/model.mlmodel"), "nonsense").unwrap();
    let system = crate::System::new().unwrap();
    let fault = crate::Framework::compile(&system, &package, &compiled).unwrap_err();
    assert!(fault.0.contains(" (com.apple."), "{fault}");
}

#[test]
fn the_system_says_its_build_and_has_a_cpu() {
    let system = crate::System::new().unwrap();
    assert!(crate::Framework::system(&system).contains("Build"));
    assert!(crate::Framework::devices(&system).unwrap().contains(&Device::Cpu));
}
