//! Against coremltools, both ways: what it writes is read here and survives, and what is written here passes its
//! checks and holds the values that were put in.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod foreign;
mod ours;

use std::fs;
use std::path::{Path, PathBuf};

use half::f16;
use lone_mil::package::Package;
use lone_mil::{
    Arg, Backend, Function, Interpreter, Keep, Literal, LoadOptions, Reference, Shape, TensorMut, TensorRef,
};
use lone_testing::python::Weight;

/// The packages in `dir`, by name.
fn packages_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut packages: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "mlpackage")).collect();
    packages.sort();
    packages
}

/// The literal that `weight` is about; none if it is what a `constexpr_*` expands to.
fn literal_of<'a>(function: &'a Function, weight: &Weight) -> Option<&'a Literal> {
    let id = function.value_named(&weight.value).expect("a value that coremltools knows");
    let Some(parameter) = &weight.parameter else { return function.constant(id) };
    let op = function.ops.iter().find(|op| op.outputs.contains(&id)).unwrap();
    match &op.args[op.spec.position(parameter).unwrap()] {
        Some(Arg::Literal(literal)) => Some(literal),
        _ => None,
    }
}

/// Checks one constant of `package` against coremltools' reading of it. False if it has to be expanded first.
fn holds(package: &Package, weight: &Weight) -> bool {
    let function = package.program.function(&weight.function).unwrap();
    let Some(literal) = literal_of(function, weight) else { return false };
    assert_eq!(literal.ty.shape[..], weight.shape, "{weight:?}");
    let bytes = package.blobs.bytes(literal).unwrap();
    if literal.ty.dtype.is_float() {
        assert_eq!(bytes, weight.bytes, "{} of {}", weight.value, weight.function);
    } else {
        let ints = Literal::from_bytes(literal.ty.clone(), bytes).to_ints().unwrap();
        assert_eq!(ints, numpy_ints(weight), "{} of {}", weight.value, weight.function);
    }
    true
}

/// The elements of an integer array.
fn numpy_ints(weight: &Weight) -> Vec<i64> {
    let wide = |size: usize, read: fn(&[u8]) -> i64| weight.bytes.chunks_exact(size).map(read).collect();
    match weight.dtype.as_str() {
        "bool" | "uint8" => wide(1, |b| b[0].into()),
        "int8" => wide(1, |b| (b[0] as i8).into()),
        "int16" => wide(2, |b| i16::from_le_bytes(b.try_into().unwrap()).into()),
        "uint16" => wide(2, |b| u16::from_le_bytes(b.try_into().unwrap()).into()),
        "int32" => wide(4, |b| i32::from_le_bytes(b.try_into().unwrap()).into()),
        "uint32" => wide(4, |b| u32::from_le_bytes(b.try_into().unwrap()).into()),
        other => panic!("{other} was not expected"),
    }
}

/// Checks a value that is made by expanding against what coremltools expands it to.
fn expands(path: &Path, weight: &Weight) {
    let (function, value) = (weight.function.clone(), weight.value.clone());
    let keep = Keep { function: function.clone(), value };
    let options =
        LoadOptions { functions: vec![function.clone()], keep: vec![keep], ..LoadOptions::default() };
    let mut model = Interpreter::<Reference>::new().load(path, &options).unwrap();
    let signature = model.signature(&function).unwrap().clone();
    let zeros: Vec<Vec<f16>> = signature.inputs.iter().map(|port| halves(&port.ty.shape)).collect();
    let inputs: Vec<TensorRef<'_>> = zeros.iter().map(|zeros| TensorRef::F16(zeros)).collect();
    let mut results: Vec<Vec<f16>> = signature.outputs.iter().map(|port| halves(&port.ty.shape)).collect();
    let mut outputs: Vec<TensorMut<'_>> = results.iter_mut().map(|result| TensorMut::F16(result)).collect();
    model.run(&function, &inputs, &mut outputs).unwrap();
    assert_eq!(signature.outputs.last().unwrap().ty.shape[..], weight.shape);
    let bytes: Vec<u8> = results.last().unwrap().iter().flat_map(|half| half.to_le_bytes()).collect();
    assert!(bytes == weight.bytes, "{} of {}", weight.value, path.display());
}

fn halves(shape: &Shape) -> Vec<f16> {
    vec![f16::ZERO; shape.elements()]
}

/// Checks every constant of the package at `path` against coremltools' reading of it.
fn agrees(path: &Path, package: &Package, weights: &[Weight]) {
    assert!(!weights.is_empty());
    for weight in weights {
        if !holds(package, weight) {
            expands(path, weight);
        }
    }
}
