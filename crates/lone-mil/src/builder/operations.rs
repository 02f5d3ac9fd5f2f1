//! The operations by name, for callers who know which one they want. All errors are [`BuildError::Op`]'s.
#![expect(clippy::missing_errors_doc, reason = "the same for all: see the line above")]

use crate::blob::BlobRef;
use crate::program::{Literal, ValueId};
use crate::{DType, TensorType};

use super::{BuildError, FunctionBuilder, Given};

type Built = Result<ValueId, BuildError>;

impl FunctionBuilder {
    fn one(&mut self, name: &str, args: &[(&str, Given)]) -> Built {
        let outputs = self.op(name, args)?;
        Ok(*outputs.first().expect("operations called so have one result"))
    }

    fn unary(&mut self, name: &str, x: ValueId) -> Built {
        self.one(name, &[("x", x.into())])
    }

    fn binary(&mut self, name: &str, x: ValueId, y: ValueId) -> Built {
        self.one(name, &[("x", x.into()), ("y", y.into())])
    }

    fn reduce(&mut self, name: &str, x: ValueId, axes: &[i32], keep_dims: bool) -> Built {
        self.one(name, &[("x", x.into()), ("axes", axes.into()), ("keep_dims", keep_dims.into())])
    }

    /// A convolution with a kernel of one element: x (N,C,H,W), weight (O,C,1,1) -> (N,O,H,W).
    pub fn conv1x1(&mut self, x: ValueId, weight: ValueId) -> Built {
        self.one("conv", &[("x", x.into()), ("weight", weight.into())])
    }

    /// As [`conv1x1`](Self::conv1x1), plus bias (O).
    pub fn conv1x1_bias(&mut self, x: ValueId, weight: ValueId, bias: ValueId) -> Built {
        self.one("conv", &[("x", x.into()), ("weight", weight.into()), ("bias", bias.into())])
    }

    /// x + y.
    pub fn add(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("add", x, y)
    }

    /// x - y.
    pub fn sub(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("sub", x, y)
    }

    /// x * y.
    pub fn mul(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("mul", x, y)
    }

    /// x / y.
    pub fn real_div(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("real_div", x, y)
    }

    /// The greater of x and y.
    pub fn maximum(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("maximum", x, y)
    }

    /// The lesser of x and y.
    pub fn minimum(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("minimum", x, y)
    }

    /// x^y.
    pub fn pow(&mut self, x: ValueId, y: ValueId) -> Built {
        self.binary("pow", x, y)
    }

    /// |x|.
    pub fn abs(&mut self, x: ValueId) -> Built {
        self.unary("abs", x)
    }

    /// e^x.
    pub fn exp(&mut self, x: ValueId) -> Built {
        self.unary("exp", x)
    }

    /// Square root.
    pub fn sqrt(&mut self, x: ValueId) -> Built {
        self.unary("sqrt", x)
    }

    /// 1 / sqrt(x); the epsilon that is written is 1e-12, which is 0 in fp16.
    pub fn rsqrt(&mut self, x: ValueId) -> Built {
        self.unary("rsqrt", x)
    }

    /// x * x.
    pub fn square(&mut self, x: ValueId) -> Built {
        self.unary("square", x)
    }

    /// 1 / (1 + e^-x), fused.
    pub fn sigmoid(&mut self, x: ValueId) -> Built {
        self.unary("sigmoid", x)
    }

    /// x / (1 + e^-x), fused.
    pub fn silu(&mut self, x: ValueId) -> Built {
        self.unary("silu", x)
    }

    /// Hyperbolic tangent.
    pub fn tanh(&mut self, x: ValueId) -> Built {
        self.unary("tanh", x)
    }

    /// x itself, as a value of its own.
    pub fn identity(&mut self, x: ValueId) -> Built {
        self.unary("identity", x)
    }

    /// x as `dtype`.
    pub fn cast(&mut self, x: ValueId, dtype: DType) -> Built {
        self.one("cast", &[("x", x.into()), ("dtype", dtype.name().into())])
    }

    /// Maximum over axes.
    pub fn reduce_max(&mut self, x: ValueId, axes: &[i32], keep_dims: bool) -> Built {
        self.reduce("reduce_max", x, axes, keep_dims)
    }

    /// Mean over axes.
    pub fn reduce_mean(&mut self, x: ValueId, axes: &[i32], keep_dims: bool) -> Built {
        self.reduce("reduce_mean", x, axes, keep_dims)
    }

    /// Sum over axes.
    pub fn reduce_sum(&mut self, x: ValueId, axes: &[i32], keep_dims: bool) -> Built {
        self.reduce("reduce_sum", x, axes, keep_dims)
    }

    /// Sum of squares over axes.
    pub fn reduce_sum_square(&mut self, x: ValueId, axes: &[i32], keep_dims: bool) -> Built {
        self.reduce("reduce_sum_square", x, axes, keep_dims)
    }

    /// Softmax along axis.
    pub fn softmax(&mut self, x: ValueId, axis: i32) -> Built {
        self.one("softmax", &[("x", x.into()), ("axis", axis.into())])
    }

    /// x (…,M,K) times y (…,K,N); `transpose_x` and `transpose_y` say that the last two axes are swapped.
    pub fn matmul(&mut self, x: ValueId, y: ValueId, transpose_x: bool, transpose_y: bool) -> Built {
        self.one(
            "matmul",
            &[
                ("x", x.into()),
                ("y", y.into()),
                ("transpose_x", transpose_x.into()),
                ("transpose_y", transpose_y.into()),
            ],
        )
    }

    /// `values` one after the other along axis.
    pub fn concat(&mut self, values: &[ValueId], axis: i32) -> Built {
        self.one("concat", &[("values", values.into()), ("axis", axis.into())])
    }

    /// `parts` equal parts along axis.
    pub fn split(&mut self, x: ValueId, parts: i32, axis: i32) -> Result<Vec<ValueId>, BuildError> {
        self.op("split", &[("x", x.into()), ("num_splits", parts.into()), ("axis", axis.into())])
    }

    /// Parts of these sizes along axis.
    pub fn split_sizes(&mut self, x: ValueId, sizes: &[i32], axis: i32) -> Result<Vec<ValueId>, BuildError> {
        self.op("split", &[("x", x.into()), ("split_sizes", sizes.into()), ("axis", axis.into())])
    }

    /// `x[begin:end]` on every axis, as Python slices.
    pub fn slice_by_index(&mut self, x: ValueId, begin: &[i32], end: &[i32]) -> Built {
        self.one("slice_by_index", &[("x", x.into()), ("begin", begin.into()), ("end", end.into())])
    }

    /// Elements `range` of one axis, counted from the front, and all of the others.
    pub fn slice_axis(&mut self, x: ValueId, axis: usize, range: std::ops::Range<usize>) -> Built {
        let bound = |of: usize| i32::try_from(of).unwrap_or(i32::MAX);
        let mut begin = vec![0; self.shape(x).len()];
        let mut end: Vec<i32> = self.shape(x).iter().map(|&dim| bound(dim)).collect();
        if let (Some(first), Some(last)) = (begin.get_mut(axis), end.get_mut(axis)) {
            (*first, *last) = (bound(range.start), bound(range.end));
        }
        self.slice_by_index(x, &begin, &end)
    }

    /// x in row-major order as `shape`; one -1 takes what is left.
    pub fn reshape(&mut self, x: ValueId, shape: &[i32]) -> Built {
        self.one("reshape", &[("x", x.into()), ("shape", shape.into())])
    }

    /// Axis i of the result is axis `perm[i]` of x.
    pub fn transpose(&mut self, x: ValueId, perm: &[i32]) -> Built {
        self.one("transpose", &[("x", x.into()), ("perm", perm.into())])
    }

    /// x with axes of 1, counted in the result.
    pub fn expand_dims(&mut self, x: ValueId, axes: &[i32]) -> Built {
        self.one("expand_dims", &[("x", x.into()), ("axes", axes.into())])
    }

    /// x without these axes, each 1.
    pub fn squeeze(&mut self, x: ValueId, axes: &[i32]) -> Built {
        self.one("squeeze", &[("x", x.into()), ("axes", axes.into())])
    }

    /// x repeated `reps[i]` times along axis i.
    pub fn tile(&mut self, x: ValueId, reps: &[i32]) -> Built {
        self.one("tile", &[("x", x.into()), ("reps", reps.into())])
    }

    /// A palettized weight: indices (D…) and lut (G…,P,V), both in blobs, the weight (D…) with the lut's type.
    pub fn lut_to_dense(
        &mut self,
        name: &str,
        indices: (TensorType, BlobRef),
        lut: (TensorType, BlobRef),
    ) -> Built {
        let indices: Literal = self.blob_literal(name, indices.0, indices.1)?;
        let lut = self.blob_literal(name, lut.0, lut.1)?;
        let weight =
            self.one("constexpr_lut_to_dense", &[("indices", indices.into()), ("lut", lut.into())])?;
        self.name(weight, name)
    }

    /// A quantized weight: data (D…), scale (B…) and offset, all in blobs: scale * (data - offset).
    pub fn blockwise_shift_scale(
        &mut self,
        name: &str,
        data: (TensorType, BlobRef),
        scale: (TensorType, BlobRef),
        offset: Option<(TensorType, BlobRef)>,
    ) -> Built {
        let mut args: Vec<(&str, Given)> = vec![
            ("data", self.blob_literal(name, data.0, data.1)?.into()),
            ("scale", self.blob_literal(name, scale.0, scale.1)?.into()),
        ];
        if let Some((ty, blob)) = offset {
            args.push(("offset", self.blob_literal(name, ty, blob)?.into()));
        }
        let weight = self.one("constexpr_blockwise_shift_scale", &args)?;
        self.name(weight, name)
    }
}
