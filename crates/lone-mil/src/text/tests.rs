//! Text and back again, and what is said of texts that are no programs.

use proptest::prelude::*;

use super::*;
use crate::blob::BlobLayout;
use crate::{DType, Function, FunctionBuilder, Literal, Program, TensorType, ValueId};

/// One of everything the text has a form for.
fn sample() -> Function {
    let mut b = FunctionBuilder::new("decode");
    let mut layout = BlobLayout::default();
    let x = b.input("x", TensorType::f16([1, 4, 1, 2])).unwrap();
    let s = b.state("s", TensorType::f16([2])).unwrap();
    let indices = (TensorType::new(DType::U4, [4, 4, 1, 1]), layout.place(DType::U4, 16).unwrap());
    let lut = (TensorType::f16([1, 1, 1, 1, 16, 1]), layout.place(DType::F16, 16).unwrap());
    let w = b.lut_to_dense("w", indices, lut).unwrap();
    let y = b.conv1x1(x, w).unwrap();
    let parts = b.split(y, 2, 1).unwrap();
    let joined = b.concat(&[parts[1], parts[0]], 1).unwrap();
    let joined = b.name(joined, "joined").unwrap();
    let scale = b.scalar_f16(-0.1).unwrap();
    let scaled = b.mul(joined, scale).unwrap();
    b.output(scaled).unwrap();
    let read = b.op("read_state", &[("input", s.into())]).unwrap()[0];
    let huge = b.scalar_f16(f32::INFINITY).unwrap();
    let least = b.minimum(read, huge).unwrap();
    b.op("write_state", &[("input", s.into()), ("data", least.into())]).unwrap();
    b.finish().unwrap()
}

#[test]
fn a_function_reads_as_it_is_meant() {
    let expected = r#"func decode<CoreML8>(x: fp16(1,4,1,2), s: state<fp16(2)>) -> (v13) {
    w: fp16(4,4,1,1) = constexpr_lut_to_dense(indices = uint4(4,4,1,1) blob 64, lut = fp16(1,1,1,1,16,1) blob 192)
    v1: int32(2) = const(val = int32(2) [1, 1])
    v2: string() = const(val = string() "valid")
    v3: int32(4) = const(val = int32(4) [0, 0, 0, 0])
    v4: int32() = const(val = int32() 1)
    v5: fp16(1,4,1,2) = conv(x = x, weight = w, strides = v1, pad_type = v2, pad = v3, dilations = v1, groups = v4)
    v6: int32() = const(val = int32() 2)
    v7: fp16(1,2,1,2), v8: fp16(1,2,1,2) = split(x = v5, num_splits = v6, axis = v4) [name = "v9"]
    v10: bool() = const(val = bool() 0)
    joined: fp16(1,4,1,2) = concat(values = (v8, v7), axis = v4, interleave = v10)
    v12: fp16() = const(val = fp16() -0.099975586)
    v13: fp16(1,4,1,2) = mul(x = joined, y = v12)
    v14: fp16(2) = read_state(input = s)
    v15: fp16() = const(val = fp16() bits 007c)
    v16: fp16(2) = minimum(x = v14, y = v15)
    write_state(input = s, data = v16) [name = "v17"]
}
"#;
    let printed = print_function(&sample());
    assert_eq!(printed, expected);
    assert_eq!(parse_function(&printed), Ok(sample()));
}

#[test]
fn the_first_function_is_the_default_one() {
    let (mut a, mut b) = (sample(), sample());
    (a.name, b.name) = ("a".into(), "b".into());
    let program = Program { functions: vec![a, b], default_function: "b".into() };
    let parsed = parse(&print(&program)).unwrap();
    assert_eq!(parsed.default_function, "b");
    assert_eq!(parsed.functions.len(), 2);
    assert_eq!(parsed.function("a"), program.function("a"));
}

#[test]
fn strings_and_comments_may_hold_anything_of_a_line() {
    let mut function = sample();
    function.ops[7].name = "a \"b\" \\ // c\nd".into();
    let printed = print_function(&function).replace(") {\n", ") { // says nothing\n\n");
    assert_eq!(parse_function(&printed), Ok(function));
}

#[test]
fn errors_say_where_and_what() {
    let text = |body: &str| format!("func f<CoreML8>(x: fp16(2)) -> (y) {{\n  {body}\n}}");
    let refusals = [
        ("func f".into(), "line 1, column 7: expected `<`, found the end"),
        ("func f<CoreML4>() -> () {}".into(), "column 8: expected CoreML5 to CoreML9, found `CoreML4`"),
        (
            text("y: fp16(2) = exp(x = z)"),
            "line 2, column 24: expected a value that is defined before, found `z`",
        ),
        (text("y: fp16(2) = expp(x = x)"), "column 16: expected an operation of CoreML8, found `expp`"),
        (text("y: fp16(2) = exp(y = x)"), "column 20: expected a parameter of exp, found `y`"),
        (text("y: half(2) = exp(x = x)"), "column 6: expected a type, found `half`"),
        (text("y: fp16(-2) = exp(x = x)"), "column 11: expected a dimension, found `-2`"),
        (text("z: fp16(2) = exp(x = x)"), "line 1, column 33: expected the name of a value, found `y`"),
        (
            text("y: int32(2) = const(val = int32(2) [1])"),
            "expected as many elements as int32(2) has, found `]`",
        ),
        (text("y: int32() = const(val = int32() 1.5)"), "expected values of int32, found `1.5`"),
        (text("y: uint1() = const(val = uint1() 2)"), "expected values of uint1, found `2`"),
        (
            text("y: string() = const(val = string() \"a)"),
            "expected a closing quote, found the end of the line",
        ),
        (text("y: fp16(2) = exp(x = x) é"), "expected a word or a mark, found 'é'"),
        (
            text("y: fp16(3) = exp(x = x)"),
            "function `f`, operation 0, exp `y`: result `y`: expected fp16(2), found fp16(3)",
        ),
    ];
    for (text, expected) in refusals {
        let message = parse_function(&text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\ndoes not say\n{expected}");
    }
}

/// A function of `steps`, each an operation on two of the values there are.
fn chain(steps: &[(u8, usize, usize, f32)]) -> Function {
    let mut b = FunctionBuilder::new("f");
    let mut values = vec![b.input("x", TensorType::f16([2, 3])).unwrap()];
    for &(op, i, j, scalar) in steps {
        let (x, y): (ValueId, ValueId) = (values[i % values.len()], values[j % values.len()]);
        let value = match op % 6 {
            0 => b.add(x, y),
            1 => b.scalar_f16(scalar).and_then(|c| b.mul(x, c)),
            2 => b.concat(&[x, y], 0).and_then(|z| b.split(z, 2, 0)).map(|parts| parts[1]),
            3 => b.transpose(x, &[1, 0]).and_then(|z| b.reshape(z, &[2, -1])),
            4 => b.softmax(x, -1),
            _ => b.constant(Literal::ints(&[i as i32, -1])).and_then(|_| b.exp(x)),
        };
        values.push(value.unwrap());
    }
    let last = b.identity(*values.last().unwrap()).unwrap();
    b.output(last).unwrap();
    b.finish().unwrap()
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        steps in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>(), any::<f32>()), 0..12),
    ) {
        let function = chain(&steps);
        prop_assert_eq!(parse_function(&print_function(&function)), Ok(function));
    }

    #[test]
    fn no_text_makes_the_parser_panic(at in 0usize..2000, with in "[ -~]{0,3}", length in 0usize..6) {
        let mut text = print_function(&sample());
        let at = at % text.len();
        let end = (at + length).min(text.len());
        text.replace_range(at..end, &with);
        let _ = parse(&text);
    }
}
