//! The form of each operation.

use lone_mil::ops::{Call, Convolution, OpError, slice_ranges, split_sizes};
use lone_mil::{Arg, DType, Literal, Op, ValueId};

use crate::compile::graph::Graph;
use crate::compile::kind::{Binary, Kind, Projection, Range, Reduction, Unary};

/// A form and what it is applied to.
type Form = (Kind, Vec<ValueId>);

/// One operation, and the graph its arguments are in.
pub(super) struct Forms<'a> {
    pub(super) call: &'a Call,
    pub(super) op: &'a Op,
    pub(super) graph: &'a Graph,
    /// The values of the function in `graph`.
    pub(super) ids: &'a [Option<ValueId>],
}

impl Forms<'_> {
    /// The form of result number `output`; `None` if there is none for it.
    ///
    /// # Errors
    /// [`OpError`] for arguments that the package's verification would have refused.
    pub(super) fn of(&self, output: usize) -> Result<Option<Form>, OpError> {
        let name = self.op.spec.name;
        if name == "concat" {
            let values = self.inputs("values");
            let axis = self.call.axis("axis", self.graph.dims(values[0]).len())?;
            return Ok(Some((Kind::Concat { axis }, values)));
        }
        let Some(x) = self.input("x") else { return Ok(None) };
        if let Some(kind) = self.moved(x, output)? {
            return Ok(Some((kind, vec![x])));
        }
        if !matches!(self.graph.get(x).ty.dtype, DType::F16 | DType::F32) {
            return Ok(None);
        }
        if let Some(unary) = self.unary() {
            return Ok(Some((Kind::Unary(unary), vec![x])));
        }
        if let Some(binary) = binary(name) {
            return Ok(self.input("y").map(|y| (Kind::Binary(binary), vec![x, y])));
        }
        if let Some(op) = reduction(name) {
            let axes = self.call.axes("axes", self.graph.dims(x).len())?;
            return Ok(Some((Kind::Reduce { op, axes }, vec![x])));
        }
        self.along_an_axis(x)
    }

    /// Operations that change nothing but where elements are, or their type.
    fn moved(&self, x: ValueId, output: usize) -> Result<Option<Kind>, OpError> {
        let (call, dims) = (self.call, self.graph.dims(x));
        Ok(Some(match self.op.spec.name {
            "identity" | "reshape" | "expand_dims" | "squeeze" => Kind::Reshape,
            "transpose" => Kind::Transpose { perm: call.axes("perm", dims.len())? },
            "split" => {
                let (sizes, axis) = (split_sizes(call)?, call.axis("axis", dims.len())?);
                let start = sizes[..output].iter().sum();
                Kind::Slice { ranges: Range::along(dims, axis, start, sizes[output]) }
            }
            "slice_by_index" => {
                let ranges = slice_ranges(call)?.into_iter();
                let range = |range: lone_mil::ops::Range| Range {
                    start: range.start,
                    step: range.step as isize,
                    len: range.len,
                };
                Kind::Slice { ranges: ranges.map(range).collect() }
            }
            "slice_by_size" if call.is_constant("begin") => {
                let lens = call.infer()?.swap_remove(0).shape;
                let begin = call.ints("begin")?.into_iter().enumerate();
                let starts = begin.map(|(axis, begin)| call.normal_axis("begin", begin, dims[axis]));
                let starts = starts.collect::<Result<Vec<_>, _>>()?.into_iter();
                Kind::Slice {
                    ranges: starts.zip(&*lens).map(|(start, &len)| Range::run(start, len)).collect(),
                }
            }
            "tile" => {
                let reps = call.ints("reps")?;
                let repeats_units = dims.iter().zip(reps).all(|(&dim, reps)| dim == 1 || reps == 1);
                return Ok(repeats_units.then_some(Kind::Broadcast));
            }
            "cast" => {
                let (from, to) = (self.graph.get(x).ty.dtype, DType::from_name(call.str("dtype")?));
                let exact =
                    to.is_some_and(|to| matches!(to, DType::F16 | DType::F32 | DType::I32) || to == from);
                return Ok(exact.then_some(Kind::Cast));
            }
            _ => return Ok(None),
        }))
    }

    /// Operations that sum over an axis.
    fn along_an_axis(&self, x: ValueId) -> Result<Option<Form>, OpError> {
        let (call, rank) = (self.call, self.graph.dims(x).len());
        match self.op.spec.name {
            "square" => Ok(Some((Kind::Binary(Binary::Mul), vec![x, x]))),
            "softmax" => Ok(Some((Kind::Softmax { axis: call.axis("axis", rank)? }, vec![x]))),
            "matmul" => {
                let matrices = |y: &ValueId| rank > 1 && self.graph.dims(*y).len() > 1;
                let Some(y) = self.input("y").filter(matrices) else { return Ok(None) };
                let [transpose_x, transpose_y] = [call.bool("transpose_x")?, call.bool("transpose_y")?];
                Ok(Some((Kind::MatMul { transpose_x, transpose_y }, vec![x, y])))
            }
            "linear" => Ok(self.projection(x, rank - 1)),
            "conv" => {
                let conv = Convolution::of(call)?;
                let pointwise = conv.groups == 1
                    && conv.kernel.iter().chain(&conv.strides).all(|&one| one == 1)
                    && conv.pad_before.iter().all(|&pad| pad == 0)
                    && conv.out == self.graph.dims(x)[2..];
                Ok(self.projection(x, 1).filter(|_| pointwise))
            }
            _ => Ok(None),
        }
    }

    fn projection(&self, x: ValueId, axis: usize) -> Option<Form> {
        let weight = self.input("weight")?;
        let value = self.graph.get(weight);
        let in_place = value.constant.is_some() && value.ty.dtype == DType::F16;
        let mut inputs = vec![x, weight];
        inputs.extend(self.input("bias"));
        let kind = Projection { parts: 1, axis, alpha: 1.0, bias: inputs.len() > 2, residual: false };
        in_place.then_some((Kind::Projection(kind), inputs))
    }

    fn unary(&self) -> Option<Unary> {
        let number = |name| self.call.literal(name).and_then(Literal::to_floats)?.first().copied();
        Some(match self.op.spec.name {
            "abs" => Unary::Abs,
            "ceil" => Unary::Ceil,
            "clip" => Unary::Clip { low: number("alpha")?, high: number("beta")? },
            "cos" => Unary::Cos,
            "exp" => Unary::Exp,
            "exp2" => Unary::Exp2,
            "floor" => Unary::Floor,
            "inverse" => Unary::Inverse { epsilon: number("epsilon")? },
            "log" => Unary::Log { epsilon: number("epsilon")? },
            "relu" => Unary::Relu,
            "round" => Unary::Round,
            "rsqrt" => Unary::Rsqrt { epsilon: number("epsilon")? },
            "sigmoid" => Unary::Sigmoid,
            "sign" => Unary::Sign,
            "silu" => Unary::Silu,
            "sin" => Unary::Sin,
            "sqrt" => Unary::Sqrt,
            "tanh" => Unary::Tanh,
            _ => return None,
        })
    }

    fn argument(&self, name: &str) -> Option<&Arg> {
        self.op.args.get(self.op.spec.position(name)?)?.as_ref()
    }

    fn input(&self, name: &str) -> Option<ValueId> {
        match self.argument(name)? {
            Arg::Value(id) => self.ids[id.index()],
            Arg::Values(_) | Arg::Literal(_) => None,
        }
    }

    fn inputs(&self, name: &str) -> Vec<ValueId> {
        match self.argument(name) {
            Some(Arg::Values(ids)) => ids.iter().filter_map(|id| self.ids[id.index()]).collect(),
            Some(Arg::Value(id)) => self.ids[id.index()].into_iter().collect(),
            Some(Arg::Literal(_)) | None => Vec::new(),
        }
    }
}

fn binary(name: &str) -> Option<Binary> {
    Some(match name {
        "add" => Binary::Add,
        "floor_div" => Binary::FloorDiv,
        "maximum" => Binary::Max,
        "minimum" => Binary::Min,
        "mod" => Binary::Mod,
        "mul" => Binary::Mul,
        "pow" => Binary::Pow,
        "real_div" => Binary::Div,
        "sub" => Binary::Sub,
        _ => return None,
    })
}

fn reduction(name: &str) -> Option<Reduction> {
    Some(match name {
        "reduce_l2_norm" => Reduction::L2Norm,
        "reduce_max" => Reduction::Max,
        "reduce_mean" => Reduction::Mean,
        "reduce_min" => Reduction::Min,
        "reduce_sum" => Reduction::Sum,
        "reduce_sum_square" => Reduction::SumSquare,
        _ => return None,
    })
}
