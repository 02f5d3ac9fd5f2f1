//! Packages of ours: every operation of the table, palettes of every width, a state.

use std::collections::BTreeSet;
use std::path::Path;

use half::f16;
use lone_mil::ops::{self, Opset};
use lone_mil::package::{Metadata, Package, PackageWriter};
use lone_mil::{
    BlobRef, BlobWriter, DType, Function, FunctionBuilder, Given, Literal, Payload, Program, TensorType,
    ValueId,
};
use lone_testing::python;

use super::{agrees, packages_in};

/// Values of every kind that operations take, all of the function that is being built.
struct Values {
    /// fp16 (1,4,6,8).
    x: ValueId,
    y: ValueId,
    /// fp16 (6,8).
    rows: ValueId,
    /// fp16 (1,4,2,8).
    update: ValueId,
    /// int32 (3).
    indices: ValueId,
    /// bool (1,4,6,8).
    bools: ValueId,
    /// fp16 (8,4,1,1).
    kernel: ValueId,
    /// fp16 (16,8).
    matrix: ValueId,
    /// fp16 (8).
    vector: ValueId,
}

type Args = fn(&Values) -> Vec<(&'static str, Given)>;

const X: Args = |v| vec![("x", v.x.into())];
const X_Y: Args = |v| vec![("x", v.x.into()), ("y", v.y.into())];
const REDUCE: Args = |v| vec![("x", v.x.into()), ("axes", [1, 3][..].into()), ("keep_dims", true.into())];

/// One use of each operation that is not a constant and needs no state.
const USES: [(&str, Args); 58] = [
    ("abs", X),
    ("ceil", X),
    ("cos", X),
    ("exp", X),
    ("exp2", X),
    ("floor", X),
    ("identity", X),
    ("inverse", X),
    ("log", X),
    ("relu", X),
    ("round", X),
    ("rsqrt", X),
    ("sigmoid", X),
    ("sign", X),
    ("silu", X),
    ("sin", X),
    ("softmax", X),
    ("sqrt", X),
    ("square", X),
    ("tanh", X),
    ("add", X_Y),
    ("floor_div", X_Y),
    ("maximum", X_Y),
    ("minimum", X_Y),
    ("mod", X_Y),
    ("mul", X_Y),
    ("pow", X_Y),
    ("real_div", X_Y),
    ("sub", X_Y),
    ("equal", X_Y),
    ("greater", X_Y),
    ("greater_equal", X_Y),
    ("less", X_Y),
    ("less_equal", X_Y),
    ("not_equal", X_Y),
    ("reduce_l2_norm", REDUCE),
    ("reduce_max", REDUCE),
    ("reduce_mean", REDUCE),
    ("reduce_min", REDUCE),
    ("reduce_sum", REDUCE),
    ("reduce_sum_square", REDUCE),
    ("cast", |v| vec![("x", v.x.into()), ("dtype", "int32".into())]),
    ("clip", |v| vec![("x", v.x.into()), ("alpha", half(-1.0)), ("beta", half(1.0))]),
    ("concat", |v| vec![("values", [v.x, v.y][..].into()), ("axis", (-2).into())]),
    ("conv", |v| vec![("x", v.x.into()), ("weight", v.kernel.into()), ("bias", v.vector.into())]),
    ("expand_dims", |v| vec![("x", v.rows.into()), ("axes", [0, -1][..].into())]),
    ("gather", |v| vec![("x", v.x.into()), ("indices", v.indices.into()), ("axis", 2.into())]),
    ("layer_norm", |v| vec![("x", v.x.into()), ("axes", [-1][..].into()), ("gamma", v.vector.into())]),
    ("linear", |v| vec![("x", v.rows.into()), ("weight", v.matrix.into())]),
    ("matmul", |v| vec![("x", v.x.into()), ("y", v.y.into()), ("transpose_y", true.into())]),
    ("reshape", |v| vec![("x", v.x.into()), ("shape", [2, -1][..].into())]),
    ("scaled_dot_product_attention", |v| {
        vec![("query", v.update.into()), ("key", v.x.into()), ("value", v.y.into())]
    }),
    ("select", |v| vec![("cond", v.bools.into()), ("a", v.x.into()), ("b", v.y.into())]),
    ("slice_by_index", |v| {
        vec![
            ("x", v.x.into()),
            ("begin", [0, 3, 0, 0][..].into()),
            ("end", [0, 0, 5, 0][..].into()),
            ("stride", [1, -2, 2, 1][..].into()),
            ("end_mask", bools([true, true, false, true])),
            ("squeeze_mask", bools([true, false, false, false])),
        ]
    }),
    ("slice_by_size", |v| {
        vec![("x", v.x.into()), ("begin", [0, 1, 0, 2][..].into()), ("size", [1, 2, -1, 3][..].into())]
    }),
    ("slice_update", |v| {
        vec![
            ("x", v.x.into()),
            ("update", v.update.into()),
            ("begin", [0, 0, 3, 0][..].into()),
            ("end", [1, 4, 5, 8][..].into()),
        ]
    }),
    ("tile", |v| vec![("x", v.rows.into()), ("reps", [2, 3][..].into())]),
    ("transpose", |v| vec![("x", v.x.into()), ("perm", [0, 3, 1, 2][..].into())]),
];

fn half(value: f32) -> Given {
    Literal::float(DType::F16, value).unwrap().into()
}

fn bools(values: [bool; 4]) -> Given {
    Literal::bools(&values).into()
}

/// Blobs with bytes of their own each, written as they are asked for.
struct Blobs {
    writer: BlobWriter<std::fs::File>,
    next: u8,
}

impl Blobs {
    /// Halves between -1 and 1.
    fn halves(&mut self, elements: usize) -> (BlobRef, Vec<u8>) {
        self.next = self.next.wrapping_add(7);
        let value = |i: usize| f16::from_f32(((i * 29 + usize::from(self.next)) % 64) as f32 / 32.0 - 1.0);
        let bytes: Vec<u8> = (0..elements).flat_map(|i| value(i).to_le_bytes()).collect();
        (self.writer.put(DType::F16, elements, &bytes).unwrap(), bytes)
    }

    /// Packed bits without a pattern; the padding is 0.
    fn bits(&mut self, dtype: DType, elements: usize) -> BlobRef {
        self.next = self.next.wrapping_add(11);
        let size = dtype.packed_bytes(elements).unwrap();
        let mut bytes: Vec<u8> = (0..size).map(|i| (i * 181 + usize::from(self.next)) as u8).collect();
        let unused = size * 8 - elements * dtype.bits() as usize;
        *bytes.last_mut().unwrap() &= 0xff >> unused;
        self.writer.put(dtype, elements, &bytes).unwrap()
    }
}

/// Makes an output of any result.
fn emit(b: &mut FunctionBuilder, value: ValueId) {
    let dtype = b.ty(value).dtype;
    let value = if matches!(dtype, DType::F16 | DType::F32 | DType::I32) {
        b.identity(value).unwrap()
    } else {
        b.cast(value, DType::F16).unwrap()
    };
    b.output(value).unwrap();
}

/// A function that uses every operation once, and the source bytes of its weight `kernel`.
fn every_op(blobs: &mut Blobs) -> (Function, Vec<u8>) {
    let mut b = FunctionBuilder::new("every_op");
    let x = b.input("x", TensorType::f16([1, 4, 6, 8])).unwrap();
    let y = b.input("y", TensorType::f16([1, 4, 6, 8])).unwrap();
    let (kernel, source) = blobs.halves(32);
    let mut weight = |b: &mut FunctionBuilder, name: &str, dims: &[usize]| {
        let blob = blobs.halves(dims.iter().product()).0;
        b.weight(name, TensorType::f16(dims.to_vec()), blob).unwrap()
    };
    let values = Values {
        x,
        y,
        rows: b.input("rows", TensorType::f16([6, 8])).unwrap(),
        update: b.input("update", TensorType::f16([1, 4, 2, 8])).unwrap(),
        indices: b.input("indices", TensorType::new(DType::I32, [3])).unwrap(),
        bools: b.op("greater", &[("x", x.into()), ("y", y.into())]).unwrap()[0],
        kernel: b.weight("kernel", TensorType::f16([8, 4, 1, 1]), kernel).unwrap(),
        matrix: weight(&mut b, "matrix", &[16, 8]),
        vector: weight(&mut b, "vector", &[8]),
    };
    for (name, args) in USES {
        for result in b.op(name, &args(&values)).unwrap_or_else(|error| panic!("{name}: {error}")) {
            emit(&mut b, result);
        }
    }
    for result in [b.split(x, 3, 2).unwrap(), b.split_sizes(x, &[1, 7], 3).unwrap()].concat() {
        emit(&mut b, result);
    }
    let squeezed = b.squeeze(x, &[0]).unwrap();
    emit(&mut b, squeezed);
    (b.finish().unwrap(), source)
}

/// Weights in each compressed form.
fn every_palette(blobs: &mut Blobs) -> Function {
    let mut b = FunctionBuilder::new("every_palette");
    let x = b.input("x", TensorType::f16([1, 6, 1, 4])).unwrap();
    for dtype in [DType::U1, DType::U2, DType::U3, DType::U4, DType::U6, DType::U8] {
        let indices = (TensorType::new(dtype, [9, 6, 1, 1]), blobs.bits(dtype, 54));
        let entries = 1 << dtype.bits();
        let lut = (TensorType::f16([3, 1, 1, 1, entries, 1]), blobs.halves(3 * entries).0);
        let weight = b.lut_to_dense(&format!("weight_{dtype}"), indices, lut).unwrap();
        let y = b.conv1x1(x, weight).unwrap();
        emit(&mut b, y);
    }
    for dtype in [DType::I4, DType::U4, DType::I8, DType::U8] {
        let data = (TensorType::new(dtype, [9, 6, 1, 1]), blobs.bits(dtype, 54));
        let scale = (TensorType::f16([9, 2, 1, 1]), blobs.halves(18).0);
        let offset = (TensorType::new(dtype, [9, 2, 1, 1]), blobs.bits(dtype, 18));
        let weight = b.blockwise_shift_scale(&format!("blocks_{dtype}"), data, scale, Some(offset)).unwrap();
        let y = b.conv1x1(x, weight).unwrap();
        emit(&mut b, y);
    }
    let data = (TensorType::new(DType::U8, [9, 6, 1, 1]), blobs.bits(DType::U8, 54));
    let affine = [
        ("quantized_data", Literal { ty: data.0, payload: Payload::Blob(data.1.offset) }.into()),
        ("zero_point", Literal::from_bytes(TensorType::scalar(DType::U8), &[128]).into()),
        ("scale", half(0.125)),
        ("axis", 0.into()),
    ];
    let weight = b.op("constexpr_affine_dequantize", &affine).unwrap()[0];
    let weight = b.name(weight, "affine_uint8").unwrap();
    let y = b.conv1x1(x, weight).unwrap();
    emit(&mut b, y);
    b.finish().unwrap()
}

fn remember() -> Function {
    let mut b = FunctionBuilder::new("remember");
    let x = b.input("x", TensorType::f16([1, 32])).unwrap();
    let memory = b.state("memory", TensorType::f16([1, 32])).unwrap();
    let seen = b.op("read_state", &[("input", memory.into())]).unwrap()[0];
    b.op("write_state", &[("input", memory.into()), ("data", x.into())]).unwrap();
    emit(&mut b, seen);
    b.finish().unwrap()
}

/// Writes all of it to `path`; gives the bytes of `kernel`.
fn write(path: &Path) -> Vec<u8> {
    let package = PackageWriter::create(path).unwrap();
    let writer = BlobWriter::new(package.create_weights().unwrap(), 28).unwrap();
    let mut blobs = Blobs { writer, next: 0 };
    let (every_op, kernel) = every_op(&mut blobs);
    let functions = vec![every_op, every_palette(&mut blobs), remember()];
    blobs.writer.finish().unwrap();
    let program = Program { functions, default_function: "every_op".into() };
    package.finish(&program, &Metadata::default()).unwrap();
    kernel
}

#[test]
fn every_operation_of_the_table_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.mlpackage");
    write(&path);
    let program = Package::open(&path).unwrap().program;
    let used: BTreeSet<&str> =
        program.functions.iter().flat_map(|f| f.ops.iter().map(|op| op.spec.name)).collect();
    let named: BTreeSet<&str> =
        ops::all().map(|row| row.name).filter(|&name| ops::find(name, Opset::CoreML8).is_ok()).collect();
    assert_eq!(named.difference(&used).collect::<Vec<_>>(), [] as [&&str; 0]);
}

#[test]
fn packages_of_ours_pass_coremltools_and_hold_what_was_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.mlpackage");
    let source = write(&path);
    let weights = python::check_packages(&[&path]).remove(0);
    let kernel = weights.iter().find(|weight| weight.value == "kernel").unwrap();
    assert_eq!((kernel.dtype.as_str(), &kernel.shape[..]), ("float16", &[8, 4, 1, 1][..]));
    assert_eq!(kernel.bytes, source);
    let expanded =
        weights.iter().filter(|weight| weight.function == "every_palette" && weight.parameter.is_none());
    assert!(expanded.filter(|weight| weight.value.contains("int")).count() >= 11);
    agrees(&path, &Package::open(&path).unwrap(), &weights);
}

#[test]
fn damaged_packages_are_refused_by_the_check_and_by_the_reader() {
    let (dir, damaged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = dir.path().join("all.mlpackage");
    write(&path);
    python::run_tool("conformance/damage_package.py", &[&path, damaged.path()]);
    let packages = packages_in(damaged.path());
    assert!(packages.len() >= 50);
    let args: Vec<&Path> = packages.iter().map(|path| path.as_path()).collect();
    let checked = python::output_of_tool("check_mlpackage.py", &args);
    let verdicts = String::from_utf8(checked.stderr).unwrap();
    for path in &packages {
        let path = path.display().to_string();
        assert!(verdicts.contains(&format!("FAIL: {path}: ")), "the check takes {path}");
        let refusal = Package::open(Path::new(&path)).map(drop).expect_err(&path).to_string();
        assert!(refusal.starts_with(&path), "{refusal}");
    }
}
