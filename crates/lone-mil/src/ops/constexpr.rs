//! Weights that are stored compressed and expanded when a program is loaded.
//!
//! ```text
//! lut_to_dense        indices (D…), lut (G…,2^bits,V): element i of axis d belongs to group i / (D/G);
//!                     entry v of index position i lands at i*V + v on vector_axis
//! blockwise           scale * (data - offset), one scale per block of data
//! ```

use super::param::{BYTE_STREAM, BYTES, FLOAT, INT, PALETTE, PALETTE_INDICES, QUANTIZED, UINTS};
use super::{Binding, Call, Domain, OpError, OpSpec, Opset, Param, row};
use crate::{Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    OpSpec {
        since: Opset::CoreML8,
        binding: Binding::Inline,
        ..row(
            "constexpr_lut_to_dense",
            &[
                Param::constant("indices", PALETTE_INDICES),
                Param::constant("lut", PALETTE),
                Param::constant("vector_axis", INT).optional(),
            ],
            infer_lut,
            "indices (D…), lut (G…,P,V) -> (D…) with vector_axis V times as long: lut[group…, index, v]",
        )
    },
    OpSpec {
        since: Opset::CoreML6,
        binding: Binding::Attributes,
        ..row(
            "constexpr_lut_to_dense",
            &[
                Param::constant("indices", BYTE_STREAM),
                Param::constant("lut", LUT_VECTOR),
                Param::constant("shape", UINTS),
            ],
            infer_packed_lut,
            "indices, a stream of log2(P)-bit numbers, lut (P) -> shape: lut[index]",
        )
    },
    OpSpec {
        since: Opset::CoreML8,
        binding: Binding::Inline,
        ..row(
            "constexpr_blockwise_shift_scale",
            &[
                Param::constant("data", QUANTIZED),
                Param::constant("scale", FLOAT),
                Param::constant("offset", QUANTIZED).optional(),
            ],
            infer_blockwise,
            "data (D…), scale and offset (B…), B dividing D -> (D…): scale * (data - offset) block by block",
        )
    },
    OpSpec {
        since: Opset::CoreML6,
        binding: Binding::Attributes,
        ..row(
            "constexpr_affine_dequantize",
            &[
                Param::constant("quantized_data", BYTES),
                Param::constant("zero_point", BYTES).like("quantized_data"),
                Param::constant("scale", FLOAT),
                Param::constant("axis", INT),
            ],
            infer_affine,
            "quantized_data (D…), zero_point and scale () or (D_axis) -> (D…): scale * (quantized_data - zero_point)",
        )
    },
];

const LUT_VECTOR: Domain = Domain { rank: Some(1), name: "fp16, fp32, int8 or uint8 vector", ..PALETTE };

fn infer_lut(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (indices, lut) = (call.ty("indices"), call.ty("lut"));
    let rank = indices.shape.len();
    let entries = 1usize << indices.dtype.bits();
    if lut.shape.len() != rank + 2 || lut.shape[rank] != entries {
        return Err(
            call.wrong_type("lut", format!("({},{entries},V) for indices {indices}", "G,".repeat(rank)))
        );
    }
    check_divides(call, "lut", &indices.shape, &lut.shape[..rank])?;
    let vector = lut.shape[rank + 1];
    let mut shape = indices.shape.to_vec();
    if call.has("vector_axis") {
        let axis = call.axis("vector_axis", rank)?;
        shape[axis] = shape[axis].saturating_mul(vector);
    } else if vector != 1 {
        return Err(OpError::Missing { op: call.spec().name, param: "vector_axis" });
    }
    Ok(vec![TensorType::new(lut.dtype, shape)])
}

/// Every dimension of `blocks` must divide that of `data`.
fn check_divides(call: &Call, name: &'static str, data: &[usize], blocks: &[usize]) -> Result<(), OpError> {
    if data.len() == blocks.len() && data.iter().zip(blocks).all(|(&d, &b)| d.is_multiple_of(b)) {
        return Ok(());
    }
    let data = Shape::new(data);
    Err(call.wrong_type(name, format!("dimensions that divide those of {data}")))
}

fn infer_packed_lut(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (lut, indices) = (call.ty("lut"), call.shape("indices")[0]);
    let dims = call.ints("shape")?.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<Vec<_>>>();
    let shape = Shape::new(dims.unwrap_or_default());
    let bits = match lut.shape[0] {
        2 => 1,
        4 => 2,
        16 => 4,
        64 => 6,
        256 => 8,
        _ => return Err(call.wrong_type("lut", "2, 4, 16, 64 or 256 entries")),
    };
    let bytes = shape.checked_elements().and_then(|n| n.checked_mul(bits)).map(|bits| bits.div_ceil(8));
    if bytes != Some(indices) {
        return Err(call.wrong_type("indices", format!("the bytes of {shape} numbers of {bits} bits")));
    }
    Ok(vec![TensorType::new(lut.dtype, shape)])
}

fn infer_blockwise(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (data, scale) = (call.ty("data"), call.ty("scale"));
    if data.shape.is_empty() {
        return Err(call.wrong_type("data", "rank 1 at least"));
    }
    check_divides(call, "scale", &data.shape, &scale.shape)?;
    if call.has("offset") {
        let offset = call.ty("offset");
        if offset.shape != scale.shape || !(offset.dtype.is_float() || offset.dtype == data.dtype) {
            return Err(call.wrong_type("offset", format!("{}{} or floats", data.dtype, scale.shape)));
        }
    }
    Ok(vec![TensorType::new(scale.dtype, data.shape.clone())])
}

fn infer_affine(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let data = call.ty("quantized_data");
    let axis = call.axis("axis", data.shape.len())?;
    for name in ["zero_point", "scale"] {
        let shape = call.shape(name);
        if !shape.is_empty() && **shape != [data.shape[axis]] {
            return Err(call.wrong_type(name, format!("a scalar or ({})", data.shape[axis])));
        }
    }
    Ok(vec![TensorType::new(call.dtype("scale"), data.shape.clone())])
}
