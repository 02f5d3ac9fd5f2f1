//! One computation as an ML Program, run on the simulator.

use anyhow::Context;
use half::f16;
use half::slice::HalfFloatSliceExt;
use lone_anesim::{AneSim, Faults};
use lone_mil::package::{Metadata, Package};
use lone_mil::{
    BlobFile, BlobWriter, BuildError, DType, FunctionBuilder, LoadOptions, Model, Program, Shape, TensorMut,
    TensorRef, TensorType, ValueId,
};

/// Tensors and what a computation over them gives.
pub(super) struct Case {
    /// What the program takes, each `(1,C,1,1)`.
    pub(super) inputs: Vec<Vec<f16>>,
    /// Weights `(O,C,1,1)` with their C.
    pub(super) weights: Vec<(usize, Vec<f16>)>,
    /// The result in f64.
    pub(super) exact: Vec<f64>,
}

/// Adds operations over the inputs and the weights, and gives their result.
pub(super) type Build = fn(&mut FunctionBuilder, &[ValueId], &[ValueId]) -> Result<ValueId, BuildError>;

/// The result on an engine with `faults`.
pub(super) fn run(case: &Case, build: Build, faults: Faults) -> anyhow::Result<Vec<f64>> {
    let package = package(case, build).context("building the program")?;
    let mut model = AneSim::new(faults).prepare(package, &LoadOptions::default())?;
    let elements = model.signature(FUNCTION)?.outputs[0].ty.shape.elements();
    let mut out = vec![f16::ZERO; elements];
    let inputs: Vec<TensorRef<'_>> = case.inputs.iter().map(|input| TensorRef::F16(input)).collect();
    model.run(FUNCTION, &inputs, &mut [TensorMut::F16(&mut out)])?;
    Ok(out.to_f32_vec().into_iter().map(f64::from).collect())
}

const FUNCTION: &str = "main";

fn package(case: &Case, build: Build) -> anyhow::Result<Package> {
    let mut b = FunctionBuilder::new(FUNCTION);
    let mut writer = BlobWriter::new(Vec::new(), case.weights.len() as u32)?;
    let mut inputs = Vec::new();
    for (i, input) in case.inputs.iter().enumerate() {
        inputs.push(b.input(&format!("x{i}"), TensorType::f16([1, input.len(), 1, 1]))?);
    }
    let mut weights = Vec::new();
    for (i, (width, values)) in case.weights.iter().enumerate() {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let blob = writer.put(DType::F16, values.len(), &bytes)?;
        let shape = Shape::from([values.len() / width, *width, 1, 1]);
        weights.push(b.weight(&format!("w{i}"), TensorType::f16(shape), blob)?);
    }
    let out = build(&mut b, &inputs, &weights)?;
    b.output(out)?;
    let program = Program { functions: vec![b.finish()?], default_function: FUNCTION.into() };
    let blobs = BlobFile::from_bytes("weight.bin", &writer.finish()?)?;
    Ok(Package { program, blobs, metadata: Metadata::default() })
}
