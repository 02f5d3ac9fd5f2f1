//! Weights stored as palettes or as scaled integers. Each is added to an input of zeros to become an output.

use lone_mil::ops::Opset;
use lone_mil::{BuildError, DType, Given, Literal, Payload, TensorType, ValueId};

use crate::author::{case, case_of};
use crate::oracle::pack;
use crate::{Author, Kind, OpCase, Tensor};

/// A case whose one output is the expanded weight.
fn expanded(
    opset: Opset,
    name: &str,
    build: impl FnOnce(&mut Author) -> Result<ValueId, BuildError>,
    expected: Tensor,
) -> OpCase {
    let zeros = Tensor::zeros(&expected.ty());
    let sum = |a: &mut Author, v: &[ValueId]| {
        let weight = build(a)?;
        Ok(vec![a.b.add(v[0], weight)?])
    };
    case_of(opset, name, Kind::Rounded, vec![zeros], sum, vec![expected])
}

pub(super) fn cases() -> Vec<OpCase> {
    let mut cases: Vec<OpCase> =
        [(DType::U1, 1), (DType::U2, 2), (DType::U3, 3), (DType::U4, 4), (DType::U6, 6), (DType::U8, 8)]
            .into_iter()
            .map(|(dtype, bits)| palette(dtype, bits))
            .collect();
    cases.extend(grouped());
    cases.extend(quantized());
    cases.extend(before_core_ml_8());
    cases.extend([multiplied(), multiplied_and_scaled()]);
    cases
}

/// Entry i of every palette is i / 4 - 3.
fn entry(i: usize) -> f32 {
    i as f32 / 4.0 - 3.0
}

fn palette(dtype: DType, bits: usize) -> OpCase {
    let entries = 1 << bits;
    let indices: Vec<u8> = (0..35).map(|i| (i * 7 % entries) as u8).collect();
    let expected: Vec<f32> = indices.iter().map(|&i| entry(i.into())).collect();
    let lut: Vec<f32> = (0..entries).map(entry).collect();
    expanded(
        Opset::CoreML8,
        &format!("constexpr_lut_to_dense of {dtype}"),
        |a| {
            let indices = a.typed(dtype, [5, 7], &pack(&indices, bits));
            let lut = a.halves([1, 1, entries, 1], &lut);
            a.b.lut_to_dense("w", indices, lut)
        },
        Tensor::f16([5, 7], &expected),
    )
}

fn grouped() -> Vec<OpCase> {
    vec![
        expanded(
            Opset::CoreML8,
            "constexpr_lut_to_dense with a palette per two rows",
            |a| {
                let indices =
                    a.typed(DType::U1, [4, 3, 1, 1], &pack(&[0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1], 1));
                let lut = a.halves([2, 1, 1, 1, 2, 1], &[1.0, 2.0, 10.0, 20.0]);
                a.b.lut_to_dense("w", indices, lut)
            },
            Tensor::f16([4, 3, 1, 1], &[1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 10.0, 10.0, 20.0, 20.0, 10.0, 20.0]),
        ),
        expanded(
            Opset::CoreML8,
            "constexpr_lut_to_dense with palettes along both axes",
            |a| {
                let indices = a.typed(DType::U1, [2, 4], &pack(&[0, 1, 0, 1, 1, 0, 1, 0], 1));
                let lut = a.halves([2, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
                a.b.lut_to_dense("w", indices, lut)
            },
            Tensor::f16([2, 4], &[1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 8.0, 7.0]),
        ),
        expanded(
            Opset::CoreML8,
            "constexpr_lut_to_dense with entries of two values along the rows",
            |a| {
                let indices = a.typed(DType::U1, [2, 2], &pack(&[0, 1, 1, 1], 1));
                let lut = a.halves([1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
                let [indices, lut] = [indices, lut].map(|(ty, blob)| literal(ty, blob.offset));
                let args = [("indices", indices), ("lut", lut), ("vector_axis", 0.into())];
                a.op("constexpr_lut_to_dense", &args)
            },
            Tensor::f16([4, 2], &[1.0, 3.0, 2.0, 4.0, 3.0, 3.0, 4.0, 4.0]),
        ),
    ]
}

fn literal(ty: TensorType, offset: u64) -> Given {
    Given::Literal(Literal { ty, payload: Payload::Blob(offset) })
}

fn quantized() -> Vec<OpCase> {
    vec![
        expanded(
            Opset::CoreML8,
            "constexpr_blockwise_shift_scale of int8 by row",
            |a| {
                let data = a.typed(DType::I8, [2, 3], &[1, 0xff, 127, 0x80, 0, 4]);
                let scale = a.halves([2, 1], &[0.5, 0.25]);
                a.b.blockwise_shift_scale("w", data, scale, None)
            },
            Tensor::f16([2, 3], &[0.5, -0.5, 63.5, -32.0, 0.0, 1.0]),
        ),
        expanded(
            Opset::CoreML8,
            "constexpr_blockwise_shift_scale of int4 by blocks of two",
            |a| {
                let data = a.typed(DType::I4, [1, 4], &[0x78, 0x1f]);
                let scale = a.halves([1, 2], &[1.0, 0.5]);
                a.b.blockwise_shift_scale("w", data, scale, None)
            },
            Tensor::f16([1, 4], &[-8.0, 7.0, -0.5, 0.5]),
        ),
        expanded(
            Opset::CoreML8,
            "constexpr_blockwise_shift_scale subtracts its offset first",
            |a| {
                let data = a.typed(DType::U8, [2, 2], &[10, 12, 255, 0]);
                let scale = a.halves([2, 1], &[0.5, 2.0]);
                let offset = a.typed(DType::U8, [2, 1], &[10, 128]);
                a.b.blockwise_shift_scale("w", data, scale, Some(offset))
            },
            Tensor::f16([2, 2], &[0.0, 1.0, 254.0, -256.0]),
        ),
    ]
}

fn before_core_ml_8() -> Vec<OpCase> {
    vec![
        expanded(
            Opset::CoreML7,
            "constexpr_lut_to_dense of a packed stream",
            |a| {
                let (ty, indices) = a.typed(DType::U8, [3], &pack(&[3, 0, 1, 2, 3, 3, 0, 1, 2, 1], 2));
                let (lut_ty, lut) = a.halves([4], &[-1.0, 0.5, 2.0, 8.0]);
                let shape = TensorType::new(DType::U32, [2]);
                let args = [
                    ("indices", literal(ty, indices.offset)),
                    ("lut", literal(lut_ty, lut.offset)),
                    ("shape", Literal::from_bytes(shape, &[5, 0, 0, 0, 2, 0, 0, 0]).into()),
                ];
                a.op("constexpr_lut_to_dense", &args)
            },
            Tensor::f16([5, 2], &[8.0, -1.0, 0.5, 2.0, 8.0, 8.0, -1.0, 0.5, 2.0, 0.5]),
        ),
        expanded(
            Opset::CoreML7,
            "constexpr_affine_dequantize by column",
            |a| {
                let (ty, data) = a.typed(DType::U8, [2, 2], &[0, 10, 20, 255]);
                let (scale_ty, scale) = a.halves([2], &[0.5, 2.0]);
                let zero = TensorType::scalar(DType::U8);
                let args = [
                    ("quantized_data", literal(ty, data.offset)),
                    ("zero_point", Literal::from_bytes(zero, &[10]).into()),
                    ("scale", literal(scale_ty, scale.offset)),
                    ("axis", 1.into()),
                ];
                a.op("constexpr_affine_dequantize", &args)
            },
            Tensor::f16([2, 2], &[-5.0, 0.0, 5.0, 490.0]),
        ),
    ]
}

/// The form that models use: a palettized weight of a convolution.
fn multiplied() -> OpCase {
    let indices: Vec<u8> = (0..16 * 24).map(|i| (i * 5 % 16) as u8).collect();
    let lut: Vec<f32> = (0..32).map(entry).collect();
    let weight: Vec<f32> =
        indices.iter().enumerate().map(|(at, &i)| lut[at / (8 * 24) * 16 + usize::from(i)]).collect();
    let x = crate::oracle::noise(15, 24 * 3);
    let conv = crate::oracle::Conv2d::pointwise(24, 3, 16);
    case(
        "conv with a palettized weight, a palette per eight rows",
        Kind::Summed,
        vec![Tensor::f16([1, 24, 1, 3], &x)],
        |a, v| {
            let indices = a.typed(DType::U4, [16, 24, 1, 1], &pack(&indices, 4));
            let lut = a.halves([2, 1, 1, 1, 16, 1], &lut);
            let weight = a.b.lut_to_dense("w", indices, lut)?;
            Ok(vec![a.b.conv1x1(v[0], weight)?])
        },
        vec![Tensor::f16([1, 16, 1, 3], &conv.run(&x, &weight, None))],
    )
}

/// Palettes followed by a factor a row.
fn multiplied_and_scaled() -> OpCase {
    let indices: Vec<u8> = (0..6 * 8).map(|i| (i * 11 % 64) as u8).collect();
    let lut: Vec<f32> = (0..64).map(entry).collect();
    let scales = [0.5, 1.0, 2.0, 4.0, 0.25, 1.0];
    let weight: Vec<f32> =
        indices.iter().enumerate().map(|(at, &i)| lut[usize::from(i)] * scales[at / 8]).collect();
    let x = crate::oracle::noise(16, 8 * 3);
    let conv = crate::oracle::Conv2d::pointwise(8, 3, 6);
    case(
        "conv with a palettized weight and a scale per row",
        Kind::Summed,
        vec![Tensor::f16([1, 8, 1, 3], &x)],
        |a, v| {
            let indices = a.typed(DType::U6, [6, 8, 1, 1], &pack(&indices, 6));
            let lut = a.halves([1, 1, 1, 1, 64, 1], &lut);
            let weight = a.b.lut_to_dense("w", indices, lut)?;
            let (scale, blob) = a.halves([6, 1, 1, 1], &scales);
            let args = [("data", weight.into()), ("scale", literal(scale, blob.offset))];
            let scaled = a.op("constexpr_blockwise_shift_scale", &args)?;
            Ok(vec![a.b.conv1x1(v[0], scaled)?])
        },
        vec![Tensor::f16([1, 6, 1, 3], &conv.run(&x, &weight, None))],
    )
}
