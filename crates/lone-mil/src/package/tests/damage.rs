//! One mutation at a time of a good model or `weight.bin`: each is refused by the name of its place.

use prost::Message;

use crate::DType;
use crate::package::Package;
use crate::proto::mil::{
    self, Argument, Block, DimensionKind, Elements, ImmediateKind, Operation, TypeKind, Value, ValueKind,
};
use crate::proto::model::{FeatureDescription, FeatureKind, Flexible, FunctionDescription, Model};

use super::sample_files;

/// What is done to the model, and what the refusal must say.
type Damage = (fn(&mut Model), &'static str);

fn description(model: &mut Model) -> &mut crate::proto::model::ModelDescription {
    model.description.as_mut().unwrap()
}

/// The description of `prefill`.
fn described(model: &mut Model) -> &mut FunctionDescription {
    &mut description(model).functions[0]
}

fn array(feature: &mut FeatureDescription) -> &mut crate::proto::model::ArrayFeatureType {
    match feature.r#type.as_mut().unwrap().kind.as_mut().unwrap() {
        FeatureKind::MultiArray(array) => array,
        FeatureKind::State(state) => state.array_type.as_mut().unwrap(),
    }
}

fn program(model: &mut Model) -> &mut mil::Program {
    model.ml_program.as_mut().unwrap()
}

/// The function `prefill`.
fn function(model: &mut Model) -> &mut mil::Function {
    program(model).functions.get_mut("prefill").unwrap()
}

fn block(model: &mut Model) -> &mut Block {
    function(model).block_specializations.get_mut("CoreML8").unwrap()
}

/// The first operation of that type in `prefill`.
fn op<'a>(model: &'a mut Model, name: &str) -> &'a mut Operation {
    block(model).operations.iter_mut().find(|op| op.r#type == name).unwrap()
}

fn input<'a>(model: &'a mut Model, name: &str, param: &str) -> &'a mut Argument {
    op(model, name).inputs.get_mut(param).unwrap()
}

/// The value of the `const` called `name`.
fn constant<'a>(model: &'a mut Model, name: &str) -> &'a mut Value {
    let mut operations = block(model).operations.iter_mut();
    let constant = operations.find(|op| op.r#type == "const" && op.outputs[0].name == name);
    constant.unwrap().attributes.get_mut("val").unwrap()
}

/// The type of the first result of the first operation of that type.
fn result<'a>(model: &'a mut Model, name: &str) -> &'a mut mil::TensorType {
    tensor(op(model, name).outputs[0].r#type.as_mut().unwrap())
}

fn tensor(ty: &mut mil::ValueType) -> &mut mil::TensorType {
    match ty.kind.as_mut().unwrap() {
        TypeKind::Tensor(tensor) => tensor,
        other => panic!("a tensor, not {other:?}"),
    }
}

fn resize(ty: &mut mil::TensorType, axis: usize, size: u64) {
    ty.dimensions[axis].kind = Some(DimensionKind::Constant(mil::ConstantDimension { size }));
}

fn elements(value: &mut Value) -> &mut Elements {
    match value.kind.as_mut().unwrap() {
        ValueKind::Immediate(mil::ImmediateValue { kind: Some(ImmediateKind::Tensor(tensor)) }) => {
            tensor.elements.as_mut().unwrap()
        }
        other => panic!("an immediate, not {other:?}"),
    }
}

fn blob(value: &mut Value) -> &mut mil::BlobFileValue {
    match value.kind.as_mut().unwrap() {
        ValueKind::BlobFile(blob) => blob,
        other => panic!("a blob, not {other:?}"),
    }
}

fn named(name: &str) -> mil::Binding {
    mil::Binding { kind: Some(mil::BindingKind::Name(name.into())) }
}

fn in_place(value: Value) -> Argument {
    Argument { arguments: vec![mil::Binding { kind: Some(mil::BindingKind::Value(value)) }] }
}

/// Of the model as a whole and of its description.
const OF_THE_DESCRIPTION: &[Damage] = &[
    (|m| m.specification_version = 5, "specification version: expected 6 to 10, found 5"),
    (|m| m.specification_version = 11, "specification version: expected 6 to 10, found 11"),
    (|m| m.specification_version = 8, "specification version: expected 9 or more, for functions, found 8"),
    (|m| m.ml_program = None, "model: expected an ML Program, found none"),
    (|m| m.description = None, "description: expected one of the features, found none"),
    (|m| program(m).version = 2, "version of the program: expected 1, found 2"),
    (
        |m| drop(program(m).attributes.insert("extra".into(), Value::default())),
        "attributes of the program: expected buildInfo only, found `extra`",
    ),
    (
        |m| drop(program(m).functions.remove("prefill")),
        "functions: expected `prefill`, which is described, found `decode`, `remember`",
    ),
    (
        |m| {
            let copy = function(m).clone();
            program(m).functions.insert("verify".into(), copy);
        },
        "functions: expected described ones only, found `verify`",
    ),
    (
        |m| description(m).default_function_name = "main".into(),
        "default function: expected the name of a function, found `main`",
    ),
    (|m| described(m).name = "decode".into(), "functions with names of their own, found `decode` twice"),
    (
        |m| {
            let input = described(m).input.clone();
            description(m).input = input;
        },
        "description: expected features of functions only, found features of the model",
    ),
    (
        |m| described(m).input[0].name = "z".into(),
        "description of `prefill`: inputs: expected `x`, found `z`",
    ),
    (|m| drop(described(m).input.pop()), "inputs: expected `past`, found `x`"),
    (|m| described(m).output.swap(0, 1), "outputs: expected `low`, found `high`"),
    (
        |m| array(&mut described(m).input[0]).data_type = 0x10020,
        "description of `prefill`: inputs: `x`: element type: expected 0x10010, found 0x10020",
    ),
    (
        |m| array(&mut described(m).output[1]).shape[3] = 5,
        "outputs: `high`: shape: expected (1,2,1,6), found [1, 2, 1, 5]",
    ),
    (|m| array(&mut described(m).input[0]).shape.truncate(3), "inputs: `x`: shape: expected (1,8,1,4)"),
    (
        |m| array(&mut described(m).input[0]).shape_range = Some(Flexible {}),
        "inputs: `x`: shape: expected a fixed one, found a flexible one",
    ),
    (
        |m| described(m).input[0].r#type.as_mut().unwrap().is_optional = true,
        "inputs: `x`: presence: expected always, found optional",
    ),
    (|m| described(m).input[0].r#type = None, "inputs: `x`: kind: expected a multi-array"),
    (
        |m| {
            let remember = &mut description(m).functions[2];
            remember.input.append(&mut remember.state);
        },
        "description of `remember`: inputs: expected `x`, found `memory`",
    ),
    (
        |m| array(&mut description(m).functions[2].state[0]).shape[0] = 2,
        "description of `remember`: states: `memory`: shape: expected (1,32), found [2, 32]",
    ),
];

/// Of a function, and of operations and what they are bound to.
const OF_OPERATIONS: &[Damage] = &[
    (|m| function(m).opset = "CoreML4".into(), "function `prefill`: opset: expected CoreML5 to CoreML9"),
    (|m| function(m).opset = "CoreML7".into(), "body: expected one for CoreML7, found those for: CoreML8"),
    (
        |m| {
            let inputs = function(m).inputs.clone();
            block(m).inputs = inputs;
        },
        "body: expected neither attributes nor inputs of its own",
    ),
    (
        |m| op(m, "conv").r#type = "conv9".into(),
        "conv9 `wide`: operation: expected one that is known here, of opset CoreML8, found `conv9`",
    ),
    (|m| op(m, "conv").blocks.push(Block::default()), "conv `wide`: blocks: expected none, found 1"),
    (|m| op(m, "conv").attributes.clear(), "conv `wide`: attribute `name`: expected a string, found none"),
    (
        |m| {
            let value = constant(m, "half").clone();
            op(m, "conv").attributes.insert("groups".into(), value);
        },
        "conv `wide`: attributes: expected `name` only, found `groups`",
    ),
    (
        |m| drop(op(m, "const").inputs.insert("val".into(), Argument::default())),
        "const `kernel`: inputs: expected none, found `val`",
    ),
    (
        |m| input(m, "conv", "x").arguments[0] = named("nope"),
        "conv `wide`: parameter `x`: name: expected a value defined before, found `nope`",
    ),
    (
        |m| input(m, "conv", "x").arguments[0] = named("low"),
        "conv `wide`: parameter `x`: name: expected a value defined before, found `low`",
    ),
    (
        |m| input(m, "conv", "x").arguments.clear(),
        "parameter `x`: value: expected a name or a literal, found none",
    ),
    (
        |m| input(m, "conv", "x").arguments[0].kind = None,
        "parameter `x`: value: expected a name or a literal",
    ),
    (
        |m| input(m, "conv", "x").arguments.push(named("past")),
        "conv: parameter `x`: expected one value, found 2",
    ),
    (|m| drop(op(m, "conv").inputs.remove("weight")), "conv: parameter `weight` is missing"),
    (
        |m| {
            let x = input(m, "conv", "x").clone();
            op(m, "conv").inputs.insert("y".into(), x);
        },
        "conv `wide`: parameters: expected x, weight, bias, strides, pad_type, pad, dilations, groups, found `y`",
    ),
    (|m| input(m, "conv", "x").arguments[0] = named("half"), "conv: parameter `x`: expected"),
    (
        |m| {
            let kernel = constant(m, "kernel").clone();
            *input(m, "conv", "weight") = in_place(kernel);
        },
        "conv `wide`: parameter `weight`: value: expected a const operation for a blob, found the blob in place",
    ),
    (
        |m| {
            let last = block(m).operations.len() - 1;
            block(m).operations.swap(last - 1, last);
        },
        "split `low`: parameter `num_splits`: name: expected a value defined before, found `v13`",
    ),
    (|m| drop(op(m, "split").outputs.pop()), "outputs: name: expected a value defined before, found `high`"),
    (
        |m| op(m, "split").outputs[1].name = "low".into(),
        "split `low`: outputs: name: expected one that is not taken",
    ),
    (
        |m| op(m, "concat").outputs[0].name = "x".into(),
        "outputs: name: expected one that is not taken, found `x` again",
    ),
    (
        |m| op(m, "conv").outputs[0].r#type = None,
        "conv `wide`: outputs: `wide`: type: expected a tensor or a state",
    ),
    (|m| block(m).outputs[0] = "nope".into(), "outputs: name: expected a value defined before, found `nope`"),
    (|m| block(m).outputs[0] = "high".into(), "output `high`: expected one such output, found two"),
    (|m| block(m).outputs.clear(), "outputs: expected one or more, found none"),
];

/// Of types, constants and references to blobs.
const OF_VALUES: &[Damage] = &[
    (
        |m| resize(result(m, "conv"), 1, 15),
        "conv `wide`: result `wide`: expected fp16(1,16,1,6), found fp16(1,15,1,6)",
    ),
    (
        |m| result(m, "conv").data_type = DType::F32.proto_code(),
        "conv `wide`: result `wide`: expected fp16(1,16,1,6), found fp32(1,16,1,6)",
    ),
    (|m| result(m, "conv").rank = 3, "`wide`: rank: expected 4, as there are dimensions, found 3"),
    (
        |m| result(m, "conv").data_type = 99,
        "`wide`: element type: expected the code of a type known here, found 99",
    ),
    (
        |m| result(m, "conv").dimensions[1].kind = None,
        "`wide`: dimension 1: expected a fixed size, found none",
    ),
    (
        |m| result(m, "conv").dimensions[1].kind = Some(DimensionKind::Unknown(Default::default())),
        "`wide`: dimension 1: expected a fixed size, found a flexible one",
    ),
    (|m| resize(tensor(function(m).inputs[1].r#type.as_mut().unwrap()), 3, 3), "concat `v"),
    (
        |m| resize(tensor(function(m).inputs[0].r#type.as_mut().unwrap()), 3, 0),
        "input `x`: expected dimensions of at least 1, found fp16(1,8,1,0)",
    ),
    (
        |m| constant(m, "half").kind = None,
        "const `half`: parameter `val`: value: expected an immediate or a blob",
    ),
    (
        |m| *elements(constant(m, "half")) = Elements::Floats(mil::Floats { values: vec![0.5] }),
        "const `half`: parameter `val`: fp16() value: expected `bytes`, found `floats`",
    ),
    (
        |m| *elements(constant(m, "half")) = Elements::Bytes(mil::Bytes { values: vec![0] }),
        "const `half`: parameter `val`: fp16() value: expected 2 bytes of elements, found 1",
    ),
    (
        |m| tensor(constant(m, "half").r#type.as_mut().unwrap()).data_type = DType::BF16.proto_code(),
        "const `half`: result `half`: expected bf16(), found fp16()",
    ),
    (
        |m| blob(constant(m, "kernel")).file_name = "@model_path/weights/other.bin".into(),
        "const `kernel`: parameter `val`: blob file: expected @model_path/weights/weight.bin, found",
    ),
    (
        |m| blob(constant(m, "kernel")).offset = 128,
        "const `kernel`: model: no blob record begins at offset 128",
    ),
    (
        |m| blob(constant(m, "kernel")).offset = u64::MAX,
        "const `kernel`: model: no blob record begins at offset 18446744073709551615",
    ),
    (
        |m| blob(constant(m, "kernel")).offset = 384,
        "const `kernel`: model: record 1 at offset 384: expected fp16(16,8,1,1), found 64 uint4 values",
    ),
    (
        |m| blob(constant(m, "kernel")).offset = 512,
        "const `kernel`: model: record 2 at offset 512: expected fp16(16,8,1,1), found 32 fp16 values",
    ),
    (
        |m| match &mut input(m, "constexpr_lut_to_dense", "lut").arguments[0].kind {
            Some(mil::BindingKind::Value(lut)) => resize(tensor(lut.r#type.as_mut().unwrap()), 0, 4),
            other => panic!("a literal, not {other:?}"),
        },
        "constexpr_lut_to_dense `palette`: model: record 2 at offset 512: expected fp16(4,1,1,1,16,1), found 32",
    ),
    (
        |m| match &mut input(m, "constexpr_lut_to_dense", "lut").arguments[0].kind {
            Some(mil::BindingKind::Value(lut)) => drop(tensor(lut.r#type.as_mut().unwrap()).dimensions.pop()),
            other => panic!("a literal, not {other:?}"),
        },
        "constexpr_lut_to_dense `palette`: parameter `lut`: rank: expected 5",
    ),
];

#[test]
fn every_single_damage_of_the_model_is_refused_by_its_place() {
    let (good, weights) = sample_files();
    let model = Model::decode(&good[..]).unwrap();
    Package::from_bytes("model", &model.encode_to_vec(), &weights).unwrap();
    for (damage, expected) in [OF_THE_DESCRIPTION, OF_OPERATIONS, OF_VALUES].concat() {
        let mut damaged = model.clone();
        damage(&mut damaged);
        assert_ne!(damaged, model, "nothing was damaged where {expected:?} was expected");
        let refusal = Package::from_bytes("model", &damaged.encode_to_vec(), &weights);
        let message = refusal.map(drop).expect_err(expected).to_string();
        assert!(
            message.starts_with("model: ") && message.contains(expected),
            "{message}\ndoes not say\n{expected}"
        );
    }
}

#[test]
fn every_single_damage_of_the_weights_is_refused_by_its_record() {
    let (model, good) = sample_files();
    // Where, what is put there, what the refusal must say. Records: fp16 at 64, uint4 at 384, fp16 at 512.
    let damages: [(usize, &[u8], &str); 10] = [
        (0, &[2], "file size: expected 480 bytes for the 2 blobs the header counts"),
        (0, &[4], "record 3 at offset 640"),
        (4, &[1], "header version: expected 2, found 1"),
        (64, &[0], "record 0 at offset 64: sentinel"),
        (
            384 + 4,
            &[10],
            "palette`: weights: record 1 at offset 384: expected uint4(4,16,1,1), found 128 uint2 values",
        ),
        (384 + 4, &[0], "record 1 at offset 384: dtype code"),
        (
            384 + 8,
            &[31],
            "palette`: weights: record 1 at offset 384: expected uint4(4,16,1,1), found 62 uint4 values",
        ),
        (512 + 9, &[1], "record 2 at offset 512: data size: expected at most 64 bytes, found 320"),
        (512 + 17, &[0], "record 2 at offset 512: data offset: expected 576, found 64"),
        (
            384 + 24,
            &[4],
            "palette`: weights: record 1 at offset 384: expected uint4(4,16,1,1), found 63 uint4 values",
        ),
    ];
    for (at, patch, expected) in damages {
        let mut damaged = good.clone();
        damaged[at..at + patch.len()].copy_from_slice(patch);
        let message =
            Package::from_bytes("weights", &model, &damaged).map(drop).expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}\ndoes not say\n{expected}");
    }
}
