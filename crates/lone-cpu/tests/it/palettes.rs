//! Weights as indices into palettes, in memory of every kind.

use std::num::NonZeroUsize;

use half::f16;
use lone_cpu::{CpuBackend, CpuOptions, Isa};
use lone_mil::{
    BlobLayout, BlobWriter, BuildError, DType, Function, FunctionBuilder, LoadOptions, TensorType,
};

use crate::graphs::{inputs, package, run};

/// Rows and columns of the weights.
const SIZE: usize = 64;

/// `y_i = (scale_i w) x` for one `w` of indices into a palette of bf16 numbers, and two scales for each row.
fn scaled_twice() -> Result<(Function, Vec<u8>), BuildError> {
    let indices: Vec<u8> = (0..SIZE * SIZE).map(|i| (i * 37 % 251) as u8).collect();
    let halves = |numbers: &[f32]| numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect();
    let palette: Vec<f32> =
        (0..256u16).map(|i| f32::from(i) / 128.0 - if i > 128 { 2.0 } else { 0.0 }).collect();
    let blobs: [(DType, usize, Vec<u8>); 4] = [
        (DType::U8, SIZE * SIZE, indices),
        (DType::F16, 256, halves(&palette)),
        (DType::F16, SIZE, halves(&[0.5; SIZE])),
        (DType::F16, SIZE, halves(&[-2.0; SIZE])),
    ];
    let mut layout = BlobLayout::default();
    let places =
        blobs.each_ref().map(|(dtype, count, _)| layout.place(*dtype, *count).expect("a small blob"));

    let mut b = FunctionBuilder::new("f");
    let x = b.input("x", TensorType::f16([1, SIZE, 1, 1]))?;
    let indices = (TensorType::new(DType::U8, [SIZE, SIZE, 1, 1]), places[0]);
    let w = b.lut_to_dense("w", indices, (TensorType::f16([1, 1, 1, 1, 256, 1]), places[1]))?;
    for (i, place) in places.into_iter().enumerate().skip(2) {
        let scale = b.weight(&format!("scale_{i}"), TensorType::f16([SIZE, 1, 1, 1]), place)?;
        let args = [("data", w.into()), ("scale", scale.into())];
        let scaled = b.op("constexpr_blockwise_shift_scale", &args)?[0];
        let y = b.conv1x1(x, scaled)?;
        let y = b.name(y, &format!("y_{i}"))?;
        b.output(y)?;
    }
    let mut writer = BlobWriter::new(Vec::new(), blobs.len() as u32).expect("writing to memory");
    for (dtype, count, bytes) in &blobs {
        writer.put(*dtype, *count, bytes).expect("writing to memory");
    }
    Ok((b.finish()?, writer.finish().expect("writing to memory")))
}

#[test]
fn weights_that_differ_in_nothing_but_scales_keep_their_own() {
    let (function, weights) = scaled_twice().unwrap();
    let given = inputs(&function);
    for (isa, huge_pages) in Isa::available().flat_map(|isa| [(isa, false), (isa, true)]) {
        let options =
            CpuOptions { threads: NonZeroUsize::new(2), isa: Some(isa), huge_pages, ..CpuOptions::default() };
        let package = package(vec![function.clone()], &weights);
        let mut model = CpuBackend::new(options).compile(package, &LoadOptions::default()).unwrap();
        let plan = model.plan("f").unwrap().to_string();
        assert!(plan.contains("lut8"), "{plan}");
        let outputs = run(&mut model, "f", &given);
        let expected: Vec<f32> = outputs[0].iter().map(|y| -4.0 * y).collect();
        assert!(expected.iter().any(|&y| y != 0.0));
        assert_eq!(outputs[1], expected, "{isa}, huge pages {huge_pages}");
    }
}
