//! What the builder writes, and what it refuses.

use super::*;
use crate::blob::BlobLayout;

fn blob(dtype: DType, elements: usize) -> BlobRef {
    BlobLayout::default().place(dtype, elements).unwrap()
}

fn halves(dims: &[usize]) -> TensorType {
    TensorType::f16(dims.to_vec())
}

#[test]
fn a_convolution_writes_all_its_defaults_and_names_its_result() {
    let mut b = FunctionBuilder::new("decode");
    let x = b.input("x", halves(&[1, 64, 1, 8])).unwrap();
    let w = b.weight("w", halves(&[128, 64, 1, 1]), blob(DType::F16, 128 * 64)).unwrap();
    let y = b.conv1x1(x, w).unwrap();
    let y = b.name(y, "y").unwrap();
    b.output(y).unwrap();
    let function = b.finish().unwrap();

    let conv = function.ops.last().unwrap();
    assert_eq!((conv.spec.name, conv.name.as_str()), ("conv", "y"));
    assert_eq!(function.value(y).ty, halves(&[1, 128, 1, 8]).into());
    let written = |param: &str| match &conv.args[conv.spec.position(param).unwrap()] {
        Some(Arg::Value(id)) => function.constant(*id).cloned(),
        _ => None,
    };
    assert_eq!(written("strides"), Some(Literal::ints(&[1, 1])));
    assert_eq!(written("pad"), Some(Literal::ints(&[0, 0, 0, 0])));
    assert_eq!(written("pad_type"), Some(Literal::string("valid")));
    assert_eq!(written("groups"), Some(Literal::int(1)));
    assert_eq!(written("bias"), None);
}

#[test]
fn equal_constants_and_equal_blobs_are_written_once() {
    let mut b = FunctionBuilder::new("f");
    assert_eq!(b.scalar_f16(0.5).unwrap(), b.scalar_f16(0.5).unwrap());
    assert_ne!(b.scalar_f16(0.5).unwrap(), b.scalar_f16(-0.5).unwrap());
    let weight = blob(DType::F16, 4);
    let first = b.weight("w", halves(&[4]), weight).unwrap();
    assert_eq!(b.weight("again", halves(&[4]), weight).unwrap(), first);
    assert_ne!(b.weight("square", halves(&[2, 2]), weight).unwrap(), first);
}

#[test]
fn a_split_gives_one_value_a_part() {
    let mut b = FunctionBuilder::new("f");
    let x = b.input("x", halves(&[1, 96, 1, 1])).unwrap();
    let parts = b.split(x, 3, 1).unwrap();
    assert_eq!(parts.iter().map(|&p| b.shape(p)[1]).collect::<Vec<_>>(), [32, 32, 32]);
    let parts = b.split_sizes(x, &[90, 6], 1).unwrap();
    assert_eq!(parts.iter().map(|&p| b.shape(p)[1]).collect::<Vec<_>>(), [90, 6]);
}

#[test]
fn a_palettized_weight_holds_its_tables_in_place() {
    let mut b = FunctionBuilder::new("f");
    let mut layout = BlobLayout::default();
    let indices = layout.place(DType::U4, 64 * 48).unwrap();
    let lut = layout.place(DType::F16, 64).unwrap();
    let weight = b.lut_to_dense(
        "w",
        (TensorType::new(DType::U4, [64, 48, 1, 1]), indices),
        (halves(&[4, 1, 1, 1, 16, 1]), lut),
    );
    assert_eq!(*b.ty(weight.unwrap()), halves(&[64, 48, 1, 1]));
    assert!(matches!(b.function.ops[0].args[..], [Some(Arg::Literal(_)), Some(Arg::Literal(_)), None]));
}

#[test]
fn refusals_name_function_operation_parameter_and_types() {
    let mut b = FunctionBuilder::new("decode");
    let x = b.input("x", halves(&[1, 64, 1, 8])).unwrap();
    let y = b.input("y", TensorType::new(DType::F32, [8])).unwrap();
    let w = b.weight("w", halves(&[128, 32, 1, 1]), blob(DType::F16, 128 * 32)).unwrap();
    let refusals = [
        (
            b.conv1x1(x, w),
            "conv: parameter `weight`: expected (O,64…) for x (1,64,1,8) in 1 groups, found fp16(128,32,1,1)",
        ),
        (b.add(x, y), "add: parameter `y`: expected fp16, the type of `x`, found fp32(8)"),
        (
            b.add(x, w),
            "add: parameter `y`: expected a shape that broadcasts with x (1,64,1,8), found fp16(128,32,1,1)",
        ),
        (b.softmax(x, 4), "softmax: parameter `axis`: expected an axis of 4, found 4"),
        (
            b.reshape(x, &[3, -1]),
            "reshape: parameter `shape`: expected as many elements for x (1,64,1,8), found [3, -1]",
        ),
        (b.op("gelu_", &[]).map(|v| v[0]), "no operation `gelu_` in opset CoreML8"),
        (b.op("exp", &[("z", x.into())]).map(|v| v[0]), "exp: no parameter `z`; there are: x"),
        (b.op("exp", &[]).map(|v| v[0]), "exp: parameter `x` is missing"),
        (
            b.op("transpose", &[("x", x.into()), ("perm", x.into())]).map(|v| v[0]),
            "transpose: parameter `perm`: expected int32 vector, found fp16(1,64,1,8)",
        ),
    ];
    for (refusal, expected) in refusals {
        let message = refusal.unwrap_err().to_string();
        assert!(message.starts_with("function `decode`, operation "), "{message}");
        assert!(message.ends_with(expected), "{message}\nis not\n{expected}");
    }
}

#[test]
fn names_are_identifiers_given_once() {
    let mut b = FunctionBuilder::new("f");
    let x = b.input("v0", halves(&[4])).unwrap();
    let y = b.exp(x).unwrap();
    assert_eq!(b.function.value(y).name, "v1", "a generated name makes way for a chosen one");
    for (value, name) in [(y, "fp16"), (y, "v0"), (y, "a b"), (x, "other")] {
        assert!(matches!(b.name(value, name), Err(BuildError::Name { .. })), "{name}");
    }
    assert!(matches!(b.input("tensor", halves(&[4])), Err(BuildError::Name { .. })));
}

#[test]
fn halves_stand_in_the_program_only_as_scalars() {
    let mut b = FunctionBuilder::new("f");
    let refused = b.constant(Literal::from_bytes(halves(&[2]), &[0; 4]));
    assert!(matches!(refused, Err(BuildError::InlineHalves { .. })));
    assert!(matches!(b.weight("w", halves(&[3]), blob(DType::F16, 4)), Err(BuildError::Type { .. })));
}

#[test]
fn inputs_and_constants_are_no_outputs_and_a_function_needs_one() {
    let mut b = FunctionBuilder::new("f");
    let x = b.input("x", halves(&[4])).unwrap();
    let c = b.scalar_f16(1.0).unwrap();
    let y = b.identity(x).unwrap();
    b.output(y).unwrap();
    for value in [x, c, y] {
        assert!(matches!(b.output(value), Err(BuildError::Output { .. })));
    }
    let empty = FunctionBuilder::new("f").finish();
    assert!(matches!(empty, Err(BuildError::NoOutput { .. })));
    assert!(matches!(b.exp(ValueId(99)), Err(BuildError::NoValue { .. })));
}
