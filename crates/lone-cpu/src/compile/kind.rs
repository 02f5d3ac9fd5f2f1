//! The forms of operations: those that MIL's are brought to, and the fused ones.

use std::fmt;
use std::sync::Arc;

use super::reference::Isolated;

/// What a node computes. Letters are dimensions, see `docs/graphs.md`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Each element by itself.
    Unary(Unary),
    /// `(a, b)`, broadcast against each other.
    Binary(Binary),
    /// Over `axes`.
    Reduce { op: Reduction, axes: Vec<usize> },
    /// Over one axis.
    Softmax { axis: usize },
    /// The same elements in row-major order under another shape; also `squeeze` and `expand_dims`.
    Reshape,
    /// Axis i of the result is axis `perm[i]`.
    Transpose { perm: Vec<usize> },
    /// One run of elements of each axis; axes of 1 may be dropped from the result.
    Slice { ranges: Vec<Range> },
    /// One after the other along `axis`.
    Concat { axis: usize },
    /// Axes of 1 repeated.
    Broadcast,
    /// The same numbers as another type.
    Cast,
    /// `(x, y)`: matrices in the last two axes, the leading ones broadcast.
    MatMul { transpose_x: bool, transpose_y: bool },
    /// Anything else.
    Reference(Arc<Isolated>),

    /// See [`Projection`].
    Projection(Projection),
    /// `(x, weight)`: `weight * x / sqrt(mean of x² over axis + epsilon)`, weight along axis.
    RmsNorm { axis: usize, epsilon: f32 },
    /// `(gate, up)`: `gate / (1 + e^-gate) * up`.
    GatedSilu,
    /// `(x, cos, sin)`: `x * cos + concat(-x[d/2..], x[..d/2]) * sin` along `axis`.
    Rope { axis: usize },
    /// `(window (D…,K-1+S,1…), w_0 (D), w_1 (D), …)`: `Σ_k w_k * window[k..k+S]` along `axis`; the w are constants.
    ShortConv { axis: usize },
    /// See [`Attention`].
    Attention(Attention),
}

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unary {
    Abs,
    Ceil,
    Clip { low: f32, high: f32 },
    Cos,
    Exp,
    Exp2,
    Floor,
    Inverse { epsilon: f32 },
    Log { epsilon: f32 },
    Relu,
    Round,
    Rsqrt { epsilon: f32 },
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Sqrt,
    Tanh,
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    Sub,
}

/// A function of many numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    L2Norm,
    Max,
    Mean,
    Min,
    Sum,
    SumSquare,
}

/// `len` elements of an axis, every `step`-th from `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) step: isize,
    pub(crate) len: usize,
}

/// Linear layers: inputs `(x_0, w_0, x_1, w_1, …[, bias (M)][, residual])`, result
/// `alpha * Σ_i w_i x_i + bias + residual`. Weights are f16 constants `(M,K_i,1…)`; `axis` has K_i elements in x_i and M
/// in the result, which are alike otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Projection {
    /// How many pairs of x and w.
    pub(crate) parts: usize,
    pub(crate) axis: usize,
    pub(crate) alpha: f32,
    pub(crate) bias: bool,
    pub(crate) residual: bool,
}

/// Attention of H query heads that share G groups of keys and values, over rows of the past and then the S new ones.
///
/// Inputs `(query (H,S,d), new keys (G,S,d), new values (G,S,d), masks (S,…) …, keys (G,T_0,d), values (G,T_0,d) …)`,
/// each up to axes of 1; result `(H,S,d)`. The masks side by side are `(S,T+S)`, T = T_0 + …. Past keys and values
/// are f16 inputs of the function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    pub(crate) heads: usize,
    pub(crate) groups: usize,
    pub(crate) queries: usize,
    pub(crate) head_dim: usize,
    pub(crate) masks: usize,
}

impl Kind {
    /// Whether the result is made of elements of the input where they are, if they can stay there.
    pub(crate) fn is_view(&self) -> bool {
        matches!(
            self,
            Kind::Reshape | Kind::Transpose { .. } | Kind::Slice { .. } | Kind::Broadcast | Kind::Cast
        )
    }
}

impl Range {
    /// `len` elements from `start` on.
    pub(crate) fn run(start: usize, len: usize) -> Self {
        Range { start, step: 1, len }
    }

    /// `len` elements from `start` on along `axis`, and all along the other axes of `dims`.
    pub(crate) fn along(dims: &[usize], axis: usize, start: usize, len: usize) -> Vec<Self> {
        let mut ranges: Vec<Range> = dims.iter().map(|&len| Range::run(0, len)).collect();
        ranges[axis] = Range::run(start, len);
        ranges
    }
}

impl Unary {
    /// Its value at `x`.
    pub(crate) fn apply(self, x: f32) -> f32 {
        match self {
            Unary::Abs => x.abs(),
            Unary::Ceil => x.ceil(),
            Unary::Clip { low, high } => x.max(low).min(high),
            Unary::Cos => x.cos(),
            Unary::Exp => x.exp(),
            Unary::Exp2 => x.exp2(),
            Unary::Floor => x.floor(),
            Unary::Inverse { epsilon } => (x + epsilon).recip(),
            Unary::Log { epsilon } => (x + epsilon).ln(),
            Unary::Relu => x.max(0.0),
            Unary::Round => x.round_ties_even(),
            Unary::Rsqrt { epsilon } => (x + epsilon).sqrt().recip(),
            Unary::Sigmoid => (1.0 + (-x).exp()).recip(),
            Unary::Sign if x == 0.0 => 0.0,
            Unary::Sign => x.signum(),
            Unary::Silu => x / (1.0 + (-x).exp()),
            Unary::Sin => x.sin(),
            Unary::Sqrt => x.sqrt(),
            Unary::Tanh => x.tanh(),
        }
    }
}

impl Binary {
    /// Its value at `a`, `b`.
    pub(crate) fn apply(self, a: f32, b: f32) -> f32 {
        match self {
            Binary::Add => a + b,
            Binary::Div => a / b,
            Binary::FloorDiv => (a / b).floor(),
            Binary::Max => a.max(b),
            Binary::Min => a.min(b),
            Binary::Mod => a - b * (a / b).floor(),
            Binary::Mul => a * b,
            Binary::Pow => a.powf(b),
            Binary::Sub => a - b,
        }
    }
}

impl fmt::Display for Unary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unary::Abs => "abs",
            Unary::Ceil => "ceil",
            Unary::Clip { .. } => "clip",
            Unary::Cos => "cos",
            Unary::Exp => "exp",
            Unary::Exp2 => "exp2",
            Unary::Floor => "floor",
            Unary::Inverse { .. } => "inverse",
            Unary::Log { .. } => "log",
            Unary::Relu => "relu",
            Unary::Round => "round",
            Unary::Rsqrt { .. } => "rsqrt",
            Unary::Sigmoid => "sigmoid",
            Unary::Sign => "sign",
            Unary::Silu => "silu",
            Unary::Sin => "sin",
            Unary::Sqrt => "sqrt",
            Unary::Tanh => "tanh",
        })
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Binary::Add => "add",
            Binary::Div => "real_div",
            Binary::FloorDiv => "floor_div",
            Binary::Max => "maximum",
            Binary::Min => "minimum",
            Binary::Mod => "mod",
            Binary::Mul => "mul",
            Binary::Pow => "pow",
            Binary::Sub => "sub",
        })
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reduction::L2Norm => "reduce_l2_norm",
            Reduction::Max => "reduce_max",
            Reduction::Mean => "reduce_mean",
            Reduction::Min => "reduce_min",
            Reduction::Sum => "reduce_sum",
            Reduction::SumSquare => "reduce_sum_square",
        })
    }
}
