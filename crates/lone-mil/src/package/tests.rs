//! Whole packages: written, read back, damaged in one place at a time.

use std::path::Path;

use crate::package::{Metadata, Package, PackageWriter};
use crate::{BlobRef, BlobWriter, DType, Function, FunctionBuilder, Program, TensorType};

struct Weights {
    kernel: BlobRef,
    indices: BlobRef,
    lut: BlobRef,
}

/// A function of `tokens` tokens over shared weights: `y = pick(lut) · (kernel · x)`, through a concat and a split.
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
    let joined = b.concat(&[past, x], 3).unwrap();
    let wide = b.conv1x1(joined, kernel).unwrap();
    let y = b.conv1x1(wide, palette).unwrap();
    let half = b.scalar_f16(0.5).unwrap();
    let y = b.mul(y, half).unwrap();
    let parts = b.split(y, 2, 1).unwrap();
    for (part, name) in parts.into_iter().zip(["low", "high"]) {
        let part = b.name(part, name).unwrap();
        b.output(part).unwrap();
    }
    b.finish().unwrap()
}

/// Writes the sample package at `path`: `decode` and `prefill` over one `weight.bin`.
fn write_sample(path: &Path) -> Program {
    let package = PackageWriter::create(path).unwrap();
    let mut blobs = BlobWriter::new(package.create_weights().unwrap(), 3).unwrap();
    let kernel: Vec<u8> =
        (0..128).flat_map(|i| half::f16::from_f32(i as f32 / 64.0 - 1.0).to_le_bytes()).collect();
    let lut: Vec<u8> = (0..32).flat_map(|i| half::f16::from_f32(i as f32).to_le_bytes()).collect();
    let indices: Vec<u8> = (0..32).map(|i| i * 7).collect();
    let weights = Weights {
        kernel: blobs.put(DType::F16, 128, &kernel).unwrap(),
        indices: blobs.put(DType::U4, 64, &indices).unwrap(),
        lut: blobs.put(DType::F16, 32, &lut).unwrap(),
    };
    blobs.finish().unwrap();
    let program = Program {
        functions: vec![function("prefill", 4, &weights), function("decode", 1, &weights)],
        default_function: "decode".into(),
    };
    package.finish(&program, &Metadata::default()).unwrap();
    program
}

#[test]
fn a_package_reads_back_as_the_program_that_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.mlpackage");
    let program = write_sample(&path);
    let package = Package::open(&path).unwrap();
    assert_eq!(package.program, program);
    assert_eq!(package.blobs.blobs().len(), 3);
}
