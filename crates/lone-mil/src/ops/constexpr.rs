//! Weights that are stored compressed and expanded when a program is loaded.
//!
//! ```text
//! lut_to_dense        indices (D…), lut (G…,2^bits,V): element i of axis d belongs to group i / (D/G);
//!                     entry v of index position i lands at i*V + v on vector_axis
//! blockwise           scale * (data - offset), one scale per block of data
//! ```

use super::eval::{Eval, Results, spread};
use super::param::{BYTE_STREAM, BYTES, FLOAT, INT, PALETTE, PALETTE_INDICES, QUANTIZED, UINTS};
use super::{Binding, Call, Domain, OpError, OpSpec, Opset, Param, row};
use crate::interpret::{Tensor, View};
use crate::literal::unpack;
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
            eval_lut,
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
            eval_packed_lut,
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
            eval_blockwise,
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
            eval_affine,
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
            call.wrong_type("lut", format!("({}{entries},V) for indices {indices}", "G,".repeat(rank)))
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

fn eval_lut<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let (lut, indices) = (e.tensor("lut"), e.tensor("indices"));
    let rank = indices.ty.shape.len();
    let [entries, vector] = lut.ty.shape[rank..] else {
        unreachable!("the type rule asks for two more axes")
    };
    let blocks = Blocks::of(&lut.ty.shape[..rank], &indices.ty.shape);
    let table = Table { entries, vector };
    let axis = if e.call.has("vector_axis") { e.call.axis("vector_axis", rank)? } else { rank - 1 };
    // Entry v of index position i lands at i * V + v on the vector axis: V comes last, and moves behind that axis.
    let mut shape = indices.ty.shape.to_vec();
    shape.push(vector);
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.insert(axis + 1, rank);
    let view = View::permuted(&Shape::new(shape), &perm);
    let (indices, ty) = (indices.as_bytes(), e.result().clone());
    Ok(vec![if lut.ty.dtype.is_float() {
        Tensor::floats(ty, view.of(&table.look_up(&indices, &lut.as_floats(), &blocks)))
    } else {
        Tensor::ints(ty, view.of(&table.look_up(&indices, &lut.as_ints(), &blocks)))
    }])
}

/// The form of a palette: so many entries of so many values each.
struct Table {
    entries: usize,
    vector: usize,
}

impl Table {
    /// The entries at `indices`, each in the palette of its block.
    fn look_up<T: Copy>(&self, indices: &[u8], lut: &[T], blocks: &Blocks) -> Vec<T> {
        let mut out = Vec::with_capacity(indices.len() * self.vector);
        for (indices, block) in indices.chunks(blocks.run).zip(&blocks.of_runs) {
            let palette = &lut[block * self.entries * self.vector..][..self.entries * self.vector];
            match self.vector {
                1 => out.extend(indices.iter().map(|&index| palette[usize::from(index)])),
                _ => indices.iter().for_each(|&index| {
                    out.extend_from_slice(&palette[usize::from(index) * self.vector..][..self.vector]);
                }),
            }
        }
        out
    }
}

/// Data whose every dimension is cut into equal parts, as runs of elements that belong to one block.
struct Blocks {
    /// Elements of a run.
    run: usize,
    /// The block of each run, in order.
    of_runs: Vec<usize>,
}

impl Blocks {
    /// `data` cut into `counts[i]` parts along axis i.
    fn of(counts: &[usize], data: &[usize]) -> Self {
        let strides = Shape::new(counts).strides();
        // Behind the last axis that is cut, everything belongs to one block.
        let Some(last) = counts.iter().rposition(|&count| count > 1) else {
            return Blocks { run: data.iter().product(), of_runs: vec![0] };
        };
        // The axes before it are walked twice: from block to block, and within one without moving.
        let (mut dims, mut steps) = (Vec::new(), Vec::new());
        for axis in 0..last {
            dims.extend([counts[axis], data[axis] / counts[axis]]);
            steps.extend([strides[axis] as isize, 0]);
        }
        dims.push(counts[last]);
        steps.push(strides[last] as isize);
        let numbers: Vec<usize> = (0..counts.iter().product()).collect();
        Blocks {
            run: data[last] / counts[last] * data[last + 1..].iter().product::<usize>(),
            of_runs: View { start: 0, dims, steps }.of(&numbers),
        }
    }
}

fn eval_packed_lut<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let (lut, ty) = (e.tensor("lut"), e.result().clone());
    let entries = lut.ty.shape[0];
    let indices = unpack(&e.tensor("indices").as_bytes(), entries.ilog2() as usize, ty.shape.elements());
    let blocks = Blocks { run: indices.len(), of_runs: vec![0] };
    let table = Table { entries, vector: 1 };
    Ok(vec![if lut.ty.dtype.is_float() {
        Tensor::floats(ty, table.look_up(&indices, &lut.as_floats(), &blocks))
    } else {
        Tensor::ints(ty, table.look_up(&indices, &lut.as_ints(), &blocks))
    }])
}

/// The numbers of a tensor of any type.
fn numbers(tensor: &Tensor<'_>) -> Vec<f32> {
    match tensor.ty.dtype.is_float() {
        true => tensor.as_floats().into_owned(),
        false => tensor.as_ints().iter().map(|&value| value as f32).collect(),
    }
}

fn eval_blockwise<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let (mut data, scale) = (numbers(e.tensor("data")), e.floats("scale"));
    let offset = e.tensors("offset").first().map(numbers);
    let blocks = Blocks::of(e.shape("scale"), e.shape("data"));
    for (run, &block) in data.chunks_mut(blocks.run).zip(&blocks.of_runs) {
        let offset = offset.as_ref().map_or(0.0, |offset| offset[block]);
        run.iter_mut().for_each(|value| *value = scale[block] * (*value - offset));
    }
    e.computed(data)
}

fn eval_affine<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let shape = e.shape("quantized_data");
    let axis = e.call.axis("axis", shape.len())?;
    // A vector counts along axis: as a shape, ones but there.
    let along = |name| {
        let mut along = vec![1; shape.len()];
        along[axis] = e.shape(name).elements();
        Shape::new(along)
    };
    let (scale, zero) = (e.floats("scale"), numbers(e.tensor("zero_point")));
    let scale = spread(&scale, &along("scale"), shape);
    let zero = spread(&zero, &along("zero_point"), shape);
    let data = numbers(e.tensor("quantized_data"));
    e.computed(
        data.iter().zip(scale.iter().zip(zero.iter())).map(|(x, (scale, zero))| scale * (x - zero)).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Given, Literal, Payload};

    /// A constant of this type, in a blob somewhere.
    fn blob(dtype: DType, dims: &[usize]) -> Given {
        Given::Literal(Literal { ty: TensorType::new(dtype, dims.to_vec()), payload: Payload::Blob(64) })
    }

    fn infer(op: &str, constants: &[(&str, Given)]) -> String {
        super::super::rules::infer(op, &[], constants)
    }

    fn palette(indices: (DType, &[usize]), lut: (DType, &[usize]), vector_axis: Option<i32>) -> String {
        let mut args = vec![("indices", blob(indices.0, indices.1)), ("lut", blob(lut.0, lut.1))];
        args.extend(vector_axis.map(|axis| ("vector_axis", axis.into())));
        infer("constexpr_lut_to_dense", &args)
    }

    #[test]
    fn palettes_have_an_entry_per_index_and_a_group_per_block() {
        use DType::{F16, I8, U4, U6};
        let weight = [64, 48, 1, 1];
        let cases = [
            (palette((U4, &weight), (F16, &[1, 1, 1, 1, 16, 1]), None), "fp16(64,48,1,1)"),
            (palette((U4, &weight), (F16, &[4, 1, 1, 1, 16, 1]), None), "fp16(64,48,1,1)"),
            (palette((U6, &[4, 4]), (I8, &[1, 1, 64, 2]), Some(-1)), "int8(4,8)"),
            (
                palette((U4, &weight), (F16, &[1, 1, 1, 1, 8, 1]), None),
                "parameter `lut`: expected (G,G,G,G,16,V) for indices uint4(64,48,1,1), found fp16(1,1,1,1,8,1)",
            ),
            (
                palette((U4, &weight), (F16, &[5, 1, 1, 1, 16, 1]), None),
                "parameter `lut`: expected dimensions that divide those of (64,48,1,1), found fp16(5,1,1,1,16,1)",
            ),
            (palette((U6, &[4, 4]), (F16, &[1, 1, 64, 2]), None), "parameter `vector_axis` is missing"),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn scales_divide_the_data_and_offsets_are_shaped_like_them() {
        use DType::{F16, I4, I8, U8};
        let scaled = |scale: &[usize], offset: Option<(DType, &[usize])>| {
            let mut args = vec![("data", blob(I4, &[4, 6])), ("scale", blob(F16, scale))];
            args.extend(offset.map(|(dtype, dims)| ("offset", blob(dtype, dims))));
            infer("constexpr_blockwise_shift_scale", &args)
        };
        assert_eq!(scaled(&[4, 3], None), "fp16(4,6)");
        assert_eq!(scaled(&[4, 3], Some((I4, &[4, 3]))), "fp16(4,6)");
        assert_eq!(
            scaled(&[4, 4], None),
            "parameter `scale`: expected dimensions that divide those of (4,6), found fp16(4,4)"
        );
        assert_eq!(
            scaled(&[4, 3], Some((I8, &[4, 3]))),
            "parameter `offset`: expected int4(4,3) or floats, found int8(4,3)"
        );
        assert_eq!(
            scaled(&[4, 3], Some((U8, &[4, 1]))),
            "parameter `offset`: expected int4(4,3) or floats, found uint8(4,1)"
        );
    }
}
