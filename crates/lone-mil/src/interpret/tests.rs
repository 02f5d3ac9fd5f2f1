//! What the interpreter computes, refuses and keeps.

use half::f16;
use proptest::prelude::*;

use super::*;
use crate::{BlobFile, BlobWriter, FunctionBuilder, Given, Literal, Program};

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().copied().map(f16::from_f32).collect()
}

fn package(function: Function, weights: &[(DType, usize, &[u8])]) -> Package {
    let mut writer = BlobWriter::new(Vec::new(), weights.len() as u32).unwrap();
    for &(dtype, elements, data) in weights {
        writer.put(dtype, elements, data).unwrap();
    }
    let blobs = BlobFile::from_bytes("weight.bin", &writer.finish().unwrap()).unwrap();
    let program = Program { default_function: function.name.clone(), functions: vec![function] };
    Package { program, blobs, metadata: Default::default() }
}

/// `h = x + x; y = h * h` for two halves.
fn sample() -> Package {
    let mut b = FunctionBuilder::new("f");
    let x = b.input("x", TensorType::f16([2])).unwrap();
    let h = b.add(x, x).and_then(|h| b.name(h, "h")).unwrap();
    let y = b.mul(h, h).and_then(|y| b.name(y, "y")).unwrap();
    b.output(y).unwrap();
    package(b.finish().unwrap(), &[])
}

fn keep(function: &str, value: &str) -> LoadOptions {
    let keep = Keep { function: function.into(), value: value.into() };
    LoadOptions { keep: vec![keep], ..LoadOptions::default() }
}

#[test]
fn every_result_is_rounded_not_only_the_last() {
    let mut b = FunctionBuilder::new("f");
    let x = b.input("x", TensorType::f16([1])).unwrap();
    let c = b.input("c", TensorType::f16([1])).unwrap();
    let square = b.mul(x, x).unwrap();
    let rest = b.sub(square, c).unwrap();
    b.output(rest).unwrap();
    let package = package(b.finish().unwrap(), &[]);
    let mut model = Interpreter::<Reference>::new().prepare(package, &LoadOptions::default()).unwrap();
    // (1 + 2^-10)^2 is 1 + 2^-9 + 2^-20, whose last bit a half has no room for.
    let (x, c, mut rest) = (halves(&[1.000_976_6]), halves(&[1.001_953_1]), halves(&[7.0]));
    let inputs = [TensorRef::F16(&x), TensorRef::F16(&c)];
    model.run("f", &inputs, &mut [TensorMut::F16(&mut rest)]).unwrap();
    assert_eq!(rest, halves(&[0.0]));
}

#[test]
fn kept_values_become_outputs() {
    let mut model = Interpreter::<Reference>::new().prepare(sample(), &keep("f", "h")).unwrap();
    assert_eq!(model.signature("f").unwrap().outputs[1].name, "h");
    let (mut y, mut h) = (halves(&[0.0; 2]), halves(&[0.0; 2]));
    let x = halves(&[1.0, 2.0]);
    model.run("f", &[TensorRef::F16(&x)], &mut [TensorMut::F16(&mut y), TensorMut::F16(&mut h)]).unwrap();
    assert_eq!((y, h), (halves(&[4.0, 16.0]), halves(&[2.0, 4.0])));
}

#[test]
fn what_is_not_there_is_named() {
    let refusal = |options: &LoadOptions| {
        Interpreter::<Reference>::new().prepare(sample(), options).err().unwrap().to_string()
    };
    assert_eq!(refusal(&keep("f", "z")), "function `f` has no value `z`");
    assert_eq!(refusal(&keep("g", "y")), "no function `g`; there are: f");
    let options = LoadOptions { functions: vec!["g".into()], ..LoadOptions::default() };
    assert_eq!(refusal(&options), "no function `g`; there are: f");
}

#[test]
fn states_are_refused_at_load() {
    let mut b = FunctionBuilder::new("f");
    let state = b.state("s", TensorType::f16([2])).unwrap();
    let read = b.op("read_state", &[("input", state.into())]).unwrap();
    b.output(read[0]).unwrap();
    let package = package(b.finish().unwrap(), &[]);
    let refused = Interpreter::<Reference>::new().prepare(package, &LoadOptions::default());
    let message = refused.err().unwrap().to_string();
    assert_eq!(message, "function `f`, `s`: state<fp16(2)> as an input or output is not supported");
}

#[test]
fn numbers_behave_as_the_numerics_say() {
    /// Whose dot products are all 7, and whose width slices vanish.
    struct Odd;
    impl Numerics for Odd {
        fn name(&self) -> &'static str {
            "odd"
        }
        fn dot(&self, _: &[f32], _: &[f32], _: f32) -> f32 {
            7.0
        }
        fn width_slice(&self, values: &mut [f32]) {
            values.fill(0.0);
        }
    }
    let mut b = FunctionBuilder::new("f");
    let x = b.input("x", TensorType::f16([2, 2])).unwrap();
    let product = b.matmul(x, x, false, false).unwrap();
    b.output(product).unwrap();
    for start in [0, 1] {
        let part = b.slice_axis(product, 1, start..start + 1).unwrap();
        b.output(part).unwrap();
    }
    let package = package(b.finish().unwrap(), &[]);
    let mut model = Interpreter::with(Odd).prepare(package, &LoadOptions::default()).unwrap();
    let (mut product, mut first, mut second) = (halves(&[0.0; 4]), halves(&[1.0; 2]), halves(&[1.0; 2]));
    let x = product.clone();
    let mut outputs = [&mut product, &mut first, &mut second].map(|out| TensorMut::F16(out));
    model.run("f", &[TensorRef::F16(&x)], &mut outputs).unwrap();
    assert_eq!((product, first, second), (halves(&[7.0; 4]), halves(&[7.0; 2]), halves(&[0.0; 2])));
}

#[test]
fn an_index_beyond_the_table_fails_the_run_and_names_the_operation() {
    let mut b = FunctionBuilder::new("f");
    let table = b.input("table", TensorType::f16([3, 1])).unwrap();
    let index = b.input("index", TensorType::new(DType::I32, [1])).unwrap();
    let row = b.op("gather", &[("x", table.into()), ("indices", index.into())]).unwrap()[0];
    b.output(row).unwrap();
    let package = package(b.finish().unwrap(), &[]);
    let mut model = Interpreter::<Reference>::new().prepare(package, &LoadOptions::default()).unwrap();
    let (table, mut row) = (halves(&[1.0, 2.0, 3.0]), halves(&[0.0]));
    let mut run = |index: i32| {
        let inputs = [TensorRef::F16(&table), TensorRef::I32(&[index])];
        model.run("f", &inputs, &mut [TensorMut::F16(&mut row)]).map_err(|error| error.to_string())
    };
    assert_eq!(run(2), Ok(()));
    let message = run(3).unwrap_err();
    assert!(message.ends_with("gather: parameter `indices`: expected 0 to 2, found 3"), "{message}");
    assert!(run(-1).is_err());
}

#[test]
fn tensors_that_memory_cannot_hold_are_refused_at_load() {
    let mut b = FunctionBuilder::new("f");
    let mut x = b.input("x", TensorType::f16([1, 1])).unwrap();
    for _ in 0..2 {
        x = b.tile(x, &[1 << 15, 1 << 10]).unwrap();
    }
    b.output(x).unwrap();
    let refused =
        Interpreter::<Reference>::new().prepare(package(b.finish().unwrap(), &[]), &LoadOptions::default());
    let message = refused.err().unwrap().to_string();
    assert!(message.ends_with("fp16(1073741824,1048576) is not supported"), "{message}");
}

/// Any operation on tensors of any small shape, with any small numbers for its other parameters: mostly nonsense.
fn attempt(b: &mut FunctionBuilder, op: usize, tensors: &[ValueId], numbers: &[i32]) -> Option<Vec<ValueId>> {
    let rows: Vec<_> = crate::ops::all().filter(|row| row.binding == crate::ops::Binding::Named).collect();
    let row = rows[op % rows.len()];
    let rank = b.shape(tensors[0]).len();
    let mut numbers = numbers.iter().copied().cycle();
    let mut tensors = tensors.iter().copied().cycle();
    let mut args: Vec<(&str, Given)> = Vec::new();
    for param in row.params {
        let mut next = || numbers.next().unwrap_or_default();
        let dtype = param.domain.dtypes[0];
        let given: Given = match (param.domain.rank, dtype) {
            // As many numbers as the first tensor has axes, or just one.
            (Some(1), DType::I32) => {
                let len = if next() > -3 { rank } else { 1 };
                (0..len).map(|_| next() % 3).collect::<Vec<_>>().as_slice().into()
            }
            (Some(1), DType::Bool) => {
                Literal::bools(&(0..rank).map(|_| next() > 0).collect::<Vec<_>>()).into()
            }
            (Some(0), DType::I32) => (next() % 3).into(),
            (Some(0), DType::Bool) => (next() > 0).into(),
            (Some(0), DType::String) => {
                ["same", "custom", "int32", "bool"][next().unsigned_abs() as usize % 4].into()
            }
            (Some(0), _) => Literal::float(DType::F16, 0.5).unwrap().into(),
            _ if param.variadic => vec![tensors.next()?, tensors.next()?].as_slice().into(),
            _ => tensors.next()?.into(),
        };
        let is_optional = !matches!(param.presence, crate::ops::Presence::Required);
        if !(is_optional && numbers.next().unwrap_or_default() > 0) {
            args.push((param.name, given));
        }
    }
    b.op(row.name, &args).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn whatever_can_be_built_runs_and_has_the_shape_that_was_inferred(
        shapes in prop::collection::vec(prop::collection::vec(1usize..4, 0..5), 1..4),
        ops in prop::collection::vec((0usize..1000, prop::collection::vec(-4i32..5, 8..40)), 1..40),
    ) {
        let mut b = FunctionBuilder::new("f");
        let mut values: Vec<ValueId> = shapes
            .iter()
            .enumerate()
            .map(|(i, shape)| b.input(&format!("x{i}"), TensorType::f16(shape.clone())).unwrap())
            .collect();
        for (op, numbers) in &ops {
            let start = numbers[0].unsigned_abs() as usize % values.len();
            let turned = [&values[start..], &values[..start]].concat();
            values.extend(attempt(&mut b, *op, &turned, numbers).into_iter().flatten());
        }
        for &value in &values[shapes.len()..] {
            if b.ty(value).dtype.is_float() {
                b.output(value).unwrap();
            }
        }
        let last = b.identity(values[0]).unwrap();
        b.output(last).unwrap();
        let package = package(b.finish().unwrap(), &[]);
        let mut model = Interpreter::<Reference>::new().prepare(package, &LoadOptions::default()).unwrap();
        let signature = model.signature("f").unwrap().clone();
        let buffers = |ports: &[Port]| -> Vec<Vec<f16>> {
            ports.iter().map(|port| vec![f16::from_f32(0.5); port.ty.shape.elements()]).collect()
        };
        let (inputs, mut outputs) = (buffers(&signature.inputs), buffers(&signature.outputs));
        let inputs: Vec<_> = inputs.iter().map(|input| TensorRef::F16(input)).collect();
        let mut outputs: Vec<_> = outputs.iter_mut().map(|output| TensorMut::F16(output)).collect();
        // An index beyond its table may fail the run; nothing may panic.
        let _ = model.run("f", &inputs, &mut outputs);
    }
}
