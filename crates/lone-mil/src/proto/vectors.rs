//! Bytes that Apple's own protobuf classes produced, against these messages: both ways.

use std::collections::BTreeMap;
use std::fmt::Debug;

use prost::Message;

use super::mil::*;
use super::model::{
    ArrayFeatureType, FeatureDescription, FeatureKind, FeatureType, Model, ModelDescription, StateFeatureType,
};

/// The bytes of a hex dump.
fn hex(dump: &str) -> Vec<u8> {
    dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("a hex dump")).collect()
}

#[track_caller]
fn same<M: Message + Default + PartialEq + Debug>(message: M, dump: &str) {
    let bytes = hex(dump);
    assert_eq!(message.encode_to_vec(), bytes, "encoded");
    assert_eq!(M::decode(&bytes[..]).unwrap(), message, "decoded");
}

fn dimension(size: u64) -> Dimension {
    Dimension { kind: Some(DimensionKind::Constant(ConstantDimension { size })) }
}

fn tensor(data_type: i32, dims: &[u64]) -> ValueType {
    ValueType {
        kind: Some(TypeKind::Tensor(TensorType {
            data_type,
            rank: dims.len() as i64,
            dimensions: dims.iter().map(|&size| dimension(size)).collect(),
            attributes: BTreeMap::new(),
        })),
    }
}

fn value(ty: ValueType, kind: ValueKind) -> Value {
    Value { doc_string: String::new(), r#type: Some(ty), kind: Some(kind) }
}

fn immediate(ty: ValueType, elements: Elements) -> Value {
    let kind = Some(ImmediateKind::Tensor(TensorValue { elements: Some(elements) }));
    value(ty, ValueKind::Immediate(ImmediateValue { kind }))
}

fn string(text: &str) -> Value {
    immediate(tensor(2, &[]), Elements::Strings(Strings { values: vec![text.into()] }))
}

fn int(number: i32) -> Value {
    immediate(tensor(23, &[]), Elements::Ints(Ints { values: vec![number] }))
}

fn named(name: &str, ty: ValueType) -> NamedValueType {
    NamedValueType { name: name.into(), r#type: Some(ty) }
}

fn silu() -> Operation {
    let x = Argument { arguments: vec![Binding { kind: Some(BindingKind::Name("x".into())) }] };
    Operation {
        r#type: "silu".into(),
        inputs: [("x".into(), x)].into(),
        outputs: vec![named("y", tensor(10, &[1, 4]))],
        blocks: vec![],
        attributes: [("name".into(), string("y"))].into(),
    }
}

fn feature(name: &str, kind: FeatureKind) -> FeatureDescription {
    let r#type = Some(FeatureType { kind: Some(kind), is_optional: false });
    FeatureDescription { name: name.into(), short_description: String::new(), r#type }
}

fn half_array() -> ArrayFeatureType {
    ArrayFeatureType { shape: vec![1, 4], data_type: 0x10010, ..Default::default() }
}

#[test]
fn integers_strings_and_bools_are_apples_bytes() {
    same(string("y"), "12 04 0a 02 08 02 1a 07 0a 05 22 03 0a 01 79");
    same(int(-1), "12 04 0a 02 08 17 1a 10 0a 0e 12 0c 0a 0a ff ff ff ff ff ff ff ff ff 01");
    same(
        immediate(tensor(23, &[2]), Elements::Ints(Ints { values: vec![1, 1] })),
        "12 0c 0a 0a 08 17 10 01 1a 04 0a 02 08 02 1a 08 0a 06 12 04 0a 02 01 01",
    );
    same(
        immediate(tensor(1, &[]), Elements::Bools(Bools { values: vec![false] })),
        "12 04 0a 02 08 01 1a 07 0a 05 1a 03 0a 01 00",
    );
    same(
        immediate(tensor(1, &[2]), Elements::Bools(Bools { values: vec![true, false] })),
        "12 0c 0a 0a 08 01 10 01 1a 04 0a 02 08 02 1a 08 0a 06 1a 04 0a 02 01 00",
    );
}

#[test]
fn floats_and_blobs_are_apples_bytes() {
    same(
        immediate(tensor(10, &[]), Elements::Bytes(Bytes { values: vec![0, 0x38] })),
        "12 04 0a 02 08 0a 1a 08 0a 06 3a 04 0a 02 00 38",
    );
    same(
        immediate(tensor(10, &[2]), Elements::Bytes(Bytes { values: vec![0, 0x3c, 0, 0xc0] })),
        "12 0c 0a 0a 08 0a 10 01 1a 04 0a 02 08 02 1a 0a 0a 08 3a 06 0a 04 00 3c 00 c0",
    );
    same(
        immediate(tensor(11, &[]), Elements::Floats(Floats { values: vec![1.0] })),
        "12 04 0a 02 08 0b 1a 0a 0a 08 0a 06 0a 04 00 00 80 3f",
    );
    let blob = BlobFileValue { file_name: "@model_path/weights/weight.bin".into(), offset: 128 };
    same(
        value(tensor(35, &[64, 48, 1, 1]), ValueKind::BlobFile(blob)),
        "12 1e 0a 1c 08 23 10 04 1a 04 0a 02 08 40 1a 04 0a 02 08 30 1a 04 0a 02 08 01 1a 04 0a 02 08 01 2a 23 0a 1e
         40 6d 6f 64 65 6c 5f 70 61 74 68 2f 77 65 69 67 68 74 73 2f 77 65 69 67 68 74 2e 62 69 6e 10 80 01",
    );
}

#[test]
fn types_are_apples_bytes() {
    same(
        tensor(10, &[1, 32, 1, 1]),
        "0a 1c 08 0a 10 04 1a 04 0a 02 08 01 1a 04 0a 02 08 20 1a 04 0a 02 08 01 1a 04 0a 02 08 01",
    );
    let wrapped_type = Some(Box::new(tensor(10, &[1, 2])));
    same(
        ValueType { kind: Some(TypeKind::State(Box::new(StateType { wrapped_type }))) },
        "2a 14 0a 12 0a 10 08 0a 10 02 1a 04 0a 02 08 01 1a 04 0a 02 08 02",
    );
    same(dimension(1), "0a 02 08 01");
    same(Dimension { kind: Some(DimensionKind::Unknown(UnknownDimension::default())) }, "12 00");
}

#[test]
fn operations_are_apples_bytes() {
    let constant = Operation {
        r#type: "const".into(),
        inputs: BTreeMap::new(),
        outputs: vec![named("g", tensor(23, &[]))],
        blocks: vec![],
        attributes: [("name".into(), string("g")), ("val".into(), int(1))].into(),
    };
    same(
        constant,
        "0a 05 63 6f 6e 73 74 1a 09 0a 01 67 12 04 0a 02 08 17 2a 17 0a 04 6e 61 6d 65 12 0f 12 04 0a 02 08 02 1a 07
         0a 05 22 03 0a 01 67 2a 16 0a 03 76 61 6c 12 0f 12 04 0a 02 08 17 1a 07 0a 05 12 03 0a 01 01",
    );
    same(
        silu(),
        "0a 04 73 69 6c 75 12 0a 0a 01 78 12 05 0a 03 0a 01 78 1a 17 0a 01 79 12 12 0a 10 08 0a 10 02 1a 04 0a 02 08
         01 1a 04 0a 02 08 04 2a 17 0a 04 6e 61 6d 65 12 0f 12 04 0a 02 08 02 1a 07 0a 05 22 03 0a 01 79",
    );
}

#[test]
fn features_are_apples_bytes() {
    same(feature("x", FeatureKind::MultiArray(half_array())), "0a 01 78 1a 0a 2a 08 0a 02 01 04 10 90 80 04");
    let state = StateFeatureType { array_type: Some(half_array()) };
    same(feature("s", FeatureKind::State(state)), "0a 01 73 1a 0c 42 0a 0a 08 0a 02 01 04 10 90 80 04");
}

#[test]
fn a_whole_model_is_apples_bytes() {
    let block = Block { outputs: vec!["y".into()], operations: vec![silu()], ..Default::default() };
    let main = Function {
        inputs: vec![named("x", tensor(10, &[1, 4]))],
        opset: "CoreML8".into(),
        block_specializations: [("CoreML8".into(), block)].into(),
        attributes: BTreeMap::new(),
    };
    let program = Program { version: 1, functions: [("main".into(), main)].into(), ..Default::default() };
    let description = ModelDescription {
        input: vec![feature("x", FeatureKind::MultiArray(half_array()))],
        output: vec![feature("y", FeatureKind::MultiArray(half_array()))],
        ..Default::default()
    };
    same(
        Model { specification_version: 9, description: Some(description), ml_program: Some(program) },
        "08 09 12 22 0a 0f 0a 01 78 1a 0a 2a 08 0a 02 01 04 10 90 80 04 52 0f 0a 01 79 1a 0a 2a 08 0a 02
         01 04 10 90 80 04 b2 1f 85 01 08 01 12 80 01 0a 04 6d 61 69 6e 12 78 0a 17 0a 01 78 12 12 0a 10
         08 0a 10 02 1a 04 0a 02 08 01 1a 04 0a 02 08 04 12 07 43 6f 72 65 4d 4c 38 1a 54 0a 07 43 6f 72
         65 4d 4c 38 12 49 12 01 79 1a 44 0a 04 73 69 6c 75 12 0a 0a 01 78 12 05 0a 03 0a 01 78 1a 17 0a
         01 79 12 12 0a 10 08 0a 10 02 1a 04 0a 02 08 01 1a 04 0a 02 08 04 2a 17 0a 04 6e 61 6d 65 12 0f
         12 04 0a 02 08 02 1a 07 0a 05 22 03 0a 01 79",
    );
}
