//! Whole packages: written, read back, and damaged in one place at a time.

mod damage;
mod foreign;

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;

use crate::package::encode::encode_model;
use crate::package::{
    MODEL_ITEM, Metadata, Package, PackageError, PackageWriter, WEIGHTS_FILE, WEIGHTS_ITEM,
};
use crate::{BlobRef, BlobWriter, DType, Function, FunctionBuilder, Literal, Program, TensorType};

/// The blobs of the sample, in file order.
struct Weights {
    kernel: BlobRef,
    indices: BlobRef,
    lut: BlobRef,
}

/// A function of `tokens` tokens over shared weights:
/// `low, high = split(palette · (kernel · concat(past, x)) * 1/2)`.
fn function(name: &str, tokens: usize, weights: &Weights) -> Function {
    let mut b = FunctionBuilder::new(name);
    let x = b.input("x", TensorType::f16([1, 8, 1, tokens])).unwrap();
    let past = b.input("past", TensorType::f16([1, 8, 1, 2])).unwrap();
    let kernel = b.weight("kernel", TensorType::f16([16, 8, 1, 1]), weights.kernel).unwrap();
    let palette = b
        .lut_to_dense(
            "palette",
            (TensorType::new(DType::U4, [4, 16, 1, 1]), weights.indices),
            (TensorType::f16([2, 1, 1, 1, 16, 1]), weights.lut),
        )
        .unwrap();
    let half = b.scalar_f16(0.5).unwrap();
    let half = b.name(half, "half").unwrap();
    let joined = b.concat(&[past, x], 3).unwrap();
    let wide = b.conv1x1(joined, kernel).unwrap();
    let wide = b.name(wide, "wide").unwrap();
    let y = b.conv1x1(wide, palette).unwrap();
    let y = b.mul(y, half).unwrap();
    let parts = b.split(y, 2, 1).unwrap();
    for (part, name) in parts.into_iter().zip(["low", "high"]) {
        let part = b.name(part, name).unwrap();
        b.output(part).unwrap();
    }
    b.finish().unwrap()
}

/// `seen = cast(memory)`, and `memory` becomes `x`.
fn remember() -> Function {
    let mut b = FunctionBuilder::new("remember");
    let x = b.input("x", TensorType::f16([1, 32])).unwrap();
    let memory = b.state("memory", TensorType::f16([1, 32])).unwrap();
    let seen = b.op("read_state", &[("input", memory.into())]).unwrap()[0];
    b.op("write_state", &[("input", memory.into()), ("data", x.into())]).unwrap();
    let seen = b.cast(seen, DType::F32).unwrap();
    let seen = b.name(seen, "seen").unwrap();
    b.output(seen).unwrap();
    b.finish().unwrap()
}

/// Writes the sample package at `path`: three functions, two of them over one `weight.bin`.
fn write_sample(path: &Path) -> Program {
    let package = PackageWriter::create(path).unwrap();
    let mut blobs = BlobWriter::new(package.create_weights().unwrap(), 3).unwrap();
    let halves = |count: u8| -> Vec<u8> {
        (0..count).flat_map(|i| half::f16::from_f32(f32::from(i) / 64.0 - 1.0).to_le_bytes()).collect()
    };
    let weights = Weights {
        kernel: blobs.put(DType::F16, 128, &halves(128)).unwrap(),
        indices: blobs.put(DType::U4, 64, &[0x7a; 32]).unwrap(),
        lut: blobs.put(DType::F16, 32, &halves(32)).unwrap(),
    };
    blobs.finish().unwrap();
    let functions = vec![function("prefill", 4, &weights), function("decode", 1, &weights), remember()];
    let program = Program { functions, default_function: "decode".into() };
    let metadata = Metadata {
        author: "nobody".into(),
        user_defined: [("key".to_owned(), "value".to_owned())].into(),
        ..Default::default()
    };
    package.finish(&program, &metadata).unwrap();
    program
}

/// The sample's model file and `weight.bin`.
fn sample_files() -> (Vec<u8>, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    write_sample(&path);
    (fs::read(model_path(&path)).unwrap(), fs::read(weights_path(&path)).unwrap())
}

fn model_path(package: &Path) -> PathBuf {
    package.join("Data").join(MODEL_ITEM)
}

fn weights_path(package: &Path) -> PathBuf {
    package.join("Data").join(WEIGHTS_ITEM).join(WEIGHTS_FILE)
}

#[test]
fn a_package_reads_back_as_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    let program = write_sample(&path);
    let package = Package::open(&path).unwrap();
    assert_eq!(package.program, program);
    assert_eq!(package.metadata.author, "nobody");
    assert_eq!(package.metadata.user_defined["key"], "value");
    let decode = package.program.function("decode").unwrap();
    let kernel = decode.constant(decode.value_named("kernel").unwrap()).unwrap();
    assert_eq!(package.blobs.bytes(kernel).unwrap()[..4], [0x00, 0xbc, 0xe0, 0xbb], "-1 and -63/64");
}

#[test]
fn writing_what_was_read_gives_the_same_model_file() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first.mlpackage"), dir.path().join("second.mlpackage"));
    write_sample(&first);
    let read = Package::open(&first).unwrap();
    let package = PackageWriter::create(&second).unwrap();
    fs::copy(weights_path(&first), package.weights_path()).unwrap();
    package.finish(&read.program, &read.metadata).unwrap();
    assert_eq!(fs::read(model_path(&first)).unwrap(), fs::read(model_path(&second)).unwrap());
}

#[test]
fn a_program_without_weights_has_no_weight_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    let program = Program { functions: vec![remember()], default_function: "remember".into() };
    PackageWriter::create(&path).unwrap().finish(&program, &Metadata::default()).unwrap();
    let package = Package::open(&path).unwrap();
    assert_eq!(package.program, program);
    assert!(package.blobs.blobs().is_empty());
}

#[test]
fn an_unfinished_package_is_not_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    PackageWriter::create(&path).unwrap();
    let error = Package::open(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read {}", path.join("Manifest.json").display()));
    assert!(matches!(error, PackageError::Io { .. }));
}

#[test]
fn a_lost_or_unlisted_weight_file_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    write_sample(&path);
    let manifest = path.join("Manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"name\": \"weights\"", "\"name\": \"heights\"")).unwrap();
    let message = Package::open(&path).unwrap_err().to_string();
    assert!(message.contains("item `weights`: expected the folder"), "{message}");
    fs::write(&manifest, text).unwrap();
    fs::remove_file(weights_path(&path)).unwrap();
    let message = Package::open(&path).unwrap_err().to_string();
    assert_eq!(message, format!("cannot read {}", weights_path(&path).display()));
}

#[test]
fn a_model_too_large_to_be_one_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    write_sample(&path);
    fs::File::options().write(true).open(model_path(&path)).unwrap().set_len(1 << 30).unwrap();
    let message = Package::open(&path).unwrap_err().to_string();
    assert!(message.ends_with("model: expected at most 67108864 bytes, found 1073741824"), "{message}");
}

#[test]
fn the_opset_of_a_lone_function_is_not_newer_than_the_model() {
    let main = Function { name: "main".into(), opset: "CoreML9".into(), ..remember() };
    let program = Program { functions: vec![main], default_function: "main".into() };
    let mut model = encode_model(&program, &Metadata::default()).unwrap();
    model.specification_version = 9;
    let no_blobs = BlobWriter::new(Vec::new(), 0).unwrap().finish().unwrap();
    let refusal = Package::from_bytes("model", &model.encode_to_vec(), &no_blobs).unwrap_err().to_string();
    let expected = "model: description of `main`: specification version: expected 10 or more, found 9";
    assert_eq!(refusal, expected);
}

#[test]
fn parameters_in_attributes_and_literals_in_place_survive() {
    let mut b = FunctionBuilder::new("main");
    let x = b.input("x", TensorType::new(DType::F32, [2, 2])).unwrap();
    let y = b.softmax(x, 1).unwrap();
    let y = b.name(y, "y").unwrap();
    b.output(y).unwrap();
    let mut function = Function { opset: "CoreML6".into(), ..b.finish().unwrap() };
    // As other writers may: the axis in place rather than in a const of its own.
    let softmax = function.ops.last_mut().unwrap();
    softmax.args[1] = Some(crate::Arg::Literal(Literal::int(1)));
    let program = Program { functions: vec![function], default_function: "main".into() };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.mlpackage");
    PackageWriter::create(&path).unwrap().finish(&program, &Metadata::default()).unwrap();
    assert_eq!(Package::open(&path).unwrap().program, program);
}
