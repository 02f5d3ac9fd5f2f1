//! What cannot be run is refused at load and named; what fails while it runs fails that run alone.

use half::f16;
use lone_cpu::{CpuModel, Isa};
use lone_mil::{
    Backend, BackendError, BlobWriter, BuildError, DType, FunctionBuilder, LoadOptions, Model, TensorMut,
    TensorRef, TensorType,
};

use crate::graphs::{backend, package};

/// What the backend makes of a function without weights.
fn compile(build: impl Fn(&mut FunctionBuilder) -> Result<(), BuildError>) -> Result<CpuModel, BackendError> {
    let mut b = FunctionBuilder::new("f");
    build(&mut b).unwrap();
    let no_weights = BlobWriter::new(Vec::new(), 0).unwrap().finish().unwrap();
    let package = package(vec![b.finish().unwrap()], &no_weights);
    backend(Isa::detect(), true).compile(package, &LoadOptions::default())
}

fn refusal(build: impl Fn(&mut FunctionBuilder) -> Result<(), BuildError>) -> String {
    compile(build).err().expect("it cannot be run").to_string()
}

#[test]
fn a_state_is_refused_at_load() {
    let message = refusal(|b| {
        let state = b.state("s", TensorType::f16([2]))?;
        let read = b.op("read_state", &[("input", state.into())])?;
        b.output(read[0])
    });
    assert_eq!(message, "function `f`, value `s`: state<fp16(2)> is not supported");
}

#[test]
fn an_output_of_bools_is_refused_at_load() {
    let message = refusal(|b| {
        let x = b.input("x", TensorType::f16([2]))?;
        let same = b.op("equal", &[("x", x.into()), ("y", x.into())])?[0];
        let same = b.name(same, "same")?;
        b.output(same)
    });
    assert_eq!(message, "function `f`, output `same`: bool(2) is not supported");
}

#[test]
fn a_tensor_beyond_memory_is_refused_at_load() {
    let message = refusal(|b| {
        let x = b.input("x", TensorType::f16([1, 1, 1]))?;
        let large = b.tile(x, &[1 << 16, 1 << 10, 1 << 8])?;
        let large = b.exp(large)?;
        b.output(large)
    });
    assert!(message.starts_with("function `f`: working memory of more than"), "{message}");
    let message = refusal(|b| {
        let x = b.input("x", TensorType::f16([1, 1, 1]))?;
        let large = b.tile(x, &[1 << 20, 1 << 20, 1])?;
        let large = b.name(large, "large")?;
        b.output(large)
    });
    assert_eq!(message, "function `f`, value `large`: fp16(1048576,1048576,1) is not supported");
}

#[test]
fn functions_and_buffers_that_do_not_fit_are_named() {
    let mut model = compile(|b| {
        let x = b.input("x", TensorType::f16([2]))?;
        let y = b.exp(x)?;
        let y = b.name(y, "y")?;
        b.output(y)
    })
    .unwrap();
    assert_eq!(model.signature("g").unwrap_err().to_string(), "no function `g`; there are: f");
    let (x, mut short) = ([f16::ONE; 2], [f16::ZERO; 1]);
    let message = model.run("f", &[TensorRef::F16(&x)], &mut [TensorMut::F16(&mut short)]).unwrap_err();
    assert_eq!(message.to_string(), "`f`: buffer for y: expected fp16(2), found 1 x fp16");
}

#[test]
fn an_index_out_of_range_fails_its_run_alone() {
    let mut model = compile(|b| {
        let table = b.input("table", TensorType::f16([3]))?;
        let index = b.input("index", TensorType::new(DType::I32, [1]))?;
        let row = b.op("gather", &[("x", table.into()), ("indices", index.into())])?[0];
        b.output(row)
    })
    .unwrap();
    let (table, mut row) = ([1.0, 2.0, 3.0].map(f16::from_f32), [f16::ZERO]);
    let mut run = |index: i32| {
        let inputs = [TensorRef::F16(&table), TensorRef::I32(&[index])];
        model.run("f", &inputs, &mut [TensorMut::F16(&mut row)]).map_err(|error| error.to_string())
    };
    assert_eq!(run(2), Ok(()));
    let message = run(3).unwrap_err();
    assert!(message.starts_with("`f` failed: ") && message.contains("expected 0 to 2, found 3"), "{message}");
    assert_eq!(run(1), Ok(()));
    assert_eq!(row[0], f16::from_f32(2.0));
}

#[test]
fn a_package_that_is_not_there_is_an_error_of_the_package() {
    let missing = std::path::Path::new("no such.mlpackage");
    let refused = backend(Isa::detect(), true).load(missing, &LoadOptions::default());
    assert!(matches!(refused.err(), Some(BackendError::Package(_))));
}
