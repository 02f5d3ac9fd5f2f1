//! Products of matrices.

use super::call::broadcast;
use super::eval::{Eval, Results};
use super::param::{BOOL, FLOAT, FLOAT_VECTOR, Fallback, NUMBER};
use super::{Call, OpError, OpSpec, Param, row};
use crate::interpret::{Rows, Tensor, View};
use crate::{Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[
    row(
        "matmul",
        &[
            Param::new("x", NUMBER),
            Param::new("y", NUMBER).like("x"),
            Param::constant("transpose_x", BOOL).or(Fallback::Bool(false)),
            Param::constant("transpose_y", BOOL).or(Fallback::Bool(false)),
        ],
        infer_matmul,
        eval_matmul,
        "x (…,M,K), y (…,K,N) -> (…,M,N); leading axes broadcast, a vector stands for one row or column",
    ),
    row(
        "linear",
        &[
            Param::new("x", FLOAT),
            Param::constant("weight", FLOAT).like("x"),
            Param::constant("bias", FLOAT_VECTOR).like("x").optional(),
        ],
        infer_linear,
        eval_linear,
        "x (…,I), weight (O,I), bias (O) -> (…,O): x * weight^T + bias",
    ),
];

/// The extents of a `matmul`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixProduct {
    /// Leading axes of the result.
    pub batch: Vec<usize>,
    /// Rows of x; 1 for a vector.
    pub m: usize,
    /// Columns of y; 1 for a vector.
    pub n: usize,
    /// The axis summed over.
    pub k: usize,
}

impl MatrixProduct {
    /// The extents of the product that `call` asks for.
    ///
    /// # Errors
    /// [`OpError`] for shapes that do not go together.
    pub fn of(call: &Call) -> Result<Self, OpError> {
        let (x, y) = (call.shape("x"), call.shape("y"));
        for name in ["x", "y"] {
            if call.shape(name).is_empty() {
                return Err(call.wrong_type(name, "a vector or a matrix"));
            }
        }
        let (m, k) = match **x {
            [k] => (1, k),
            [.., k, m] if call.bool("transpose_x")? => (m, k),
            [.., m, k] => (m, k),
            [] => unreachable!("checked above"),
        };
        let (ky, n) = match **y {
            [k] => (k, 1),
            [.., n, k] if call.bool("transpose_y")? => (k, n),
            [.., k, n] => (k, n),
            [] => unreachable!("checked above"),
        };
        if k != ky {
            return Err(call.wrong_type("y", format!("{k} rows, to go with x {x}")));
        }
        let lead = |shape: &[usize]| shape[..shape.len().saturating_sub(2)].to_vec();
        let batch = broadcast(&lead(x), &lead(y))
            .ok_or_else(|| call.wrong_type("y", format!("leading axes that broadcast with x {x}")))?;
        Ok(MatrixProduct { batch, m, n, k })
    }
}

fn infer_matmul(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let MatrixProduct { mut batch, m, n, .. } = MatrixProduct::of(call)?;
    if call.shape("x").len() > 1 {
        batch.push(m);
    }
    if call.shape("y").len() > 1 {
        batch.push(n);
    }
    Ok(vec![TensorType::new(call.dtype("x"), batch)])
}

fn infer_linear(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (x, weight) = (call.shape("x"), call.shape("weight"));
    let Some((&features, lead)) = x.split_last().filter(|_| x.len() <= 3) else {
        return Err(call.wrong_type("x", "rank 1 to 3"));
    };
    if weight.len() != 2 || weight[1] != features {
        return Err(call.wrong_type("weight", format!("(O,{features}) for x {x}")));
    }
    if call.has("bias") && **call.shape("bias") != [weight[0]] {
        return Err(call.wrong_type("bias", format!("({})", weight[0])));
    }
    let mut shape = lead.to_vec();
    shape.push(weight[0]);
    Ok(vec![TensorType::new(call.dtype("x"), shape)])
}

fn eval_matmul<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let product = MatrixProduct::of(e.call)?;
    let x = e.tensor("x").ty.shape.len() > 1 && e.call.bool("transpose_x")?;
    let y = e.tensor("y").ty.shape.len() > 1 && !e.call.bool("transpose_y")?;
    let (x, x_batch) = matrices(e.tensor("x"), x, &product.batch);
    let (y, y_batch) = matrices(e.tensor("y"), y, &product.batch);
    if e.holds_floats("x") {
        let dot = |x: &[f32], y: &[f32]| e.numerics.dot(x, y, 0.0);
        let (x, y) = (x.as_floats(), y.as_floats());
        return e.computed(product.of_rows((&x, &x_batch), (&y, &y_batch), dot));
    }
    let dot = |x: &[i64], y: &[i64]| x.iter().zip(y).fold(0i64, |sum, (x, y)| sum.wrapping_add(x * y));
    e.computed_ints(product.of_rows((&x.as_ints(), &x_batch), (&y.as_ints(), &y_batch), dot))
}

/// The matrices of an operand with the axis summed over last, and which of them each batch takes.
fn matrices<'v>(tensor: &Tensor<'v>, swap: bool, batch: &[usize]) -> (Tensor<'v>, Vec<usize>) {
    let shape = &tensor.ty.shape;
    let rank = shape.len();
    let mut perm: Vec<usize> = (0..rank).collect();
    if swap {
        perm.swap(rank - 1, rank - 2);
    }
    let view = View::permuted(shape, &perm);
    let lead = &shape[..rank.saturating_sub(2)];
    let numbers: Vec<usize> = (0..lead.iter().product()).collect();
    let matrices = if swap { tensor.viewed(&view, &Shape::new(view.dims.clone())) } else { tensor.clone() };
    (matrices, View::broadcast(lead, batch).of(&numbers))
}

impl MatrixProduct {
    /// Every row of x (…,M,K) with every row of y (…,N,K), each with the matrix that each batch takes.
    fn of_rows<T>(
        &self,
        (x, x_batch): (&[T], &[usize]),
        (y, y_batch): (&[T], &[usize]),
        dot: impl Fn(&[T], &[T]) -> T,
    ) -> Vec<T> {
        let (m, n, k) = (self.m, self.n, self.k);
        let mut out = Vec::with_capacity(x_batch.len() * m * n);
        for (&x_at, &y_at) in x_batch.iter().zip(y_batch) {
            for row in x[x_at * m * k..][..m * k].chunks_exact(k) {
                out.extend(y[y_at * n * k..][..n * k].chunks_exact(k).map(|column| dot(row, column)));
            }
        }
        out
    }
}

fn eval_linear<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let [features, k] = **e.shape("weight") else { unreachable!("the type rule asks for a matrix") };
    let (x, bias) = (e.floats("x"), e.opt_floats("bias"));
    let mut rows = Rows::of(e.tensor("weight"), k);
    let mut out = vec![0.0; x.len() / k * features];
    for feature in 0..features {
        let row = rows.get(feature);
        let start = bias.as_ref().map_or(0.0, |bias| bias[feature]);
        for (x, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(features)) {
            out[feature] = e.numerics.dot(row, x, start);
        }
    }
    e.computed(out)
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer};

    fn matmul(x: &[usize], y: &[usize], transpose_x: bool, transpose_y: bool) -> String {
        let transposes = [("transpose_x", transpose_x.into()), ("transpose_y", transpose_y.into())];
        infer("matmul", &[("x", f16(x)), ("y", f16(y))], &transposes)
    }

    #[test]
    fn products_broadcast_their_leading_axes() {
        let cases = [
            (matmul(&[2, 3], &[3, 4], false, false), "fp16(2,4)"),
            (matmul(&[3, 2], &[4, 3], true, true), "fp16(2,4)"),
            (matmul(&[1, 4, 1, 8], &[1, 4, 16, 8], false, true), "fp16(1,4,1,16)"),
            (matmul(&[5, 1, 2, 3], &[7, 3, 4], false, false), "fp16(5,7,2,4)"),
            (matmul(&[3], &[2, 3, 4], false, false), "fp16(2,4)"),
            (matmul(&[2, 4, 3], &[3], false, false), "fp16(2,4)"),
            (matmul(&[3], &[3], false, false), "fp16()"),
            (
                matmul(&[2, 3], &[4, 2], false, false),
                "parameter `y`: expected 3 rows, to go with x (2,3), found fp16(4,2)",
            ),
            (
                matmul(&[2, 2, 3], &[3, 3, 4], false, false),
                "parameter `y`: expected leading axes that broadcast with x (2,2,3), found fp16(3,3,4)",
            ),
            (
                matmul(&[], &[3, 4], false, false),
                "parameter `x`: expected a vector or a matrix, found fp16()",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_linear_weight_must_be_constant() {
        let found = infer("linear", &[("x", f16(&[1, 3])), ("weight", f16(&[2, 3]))], &[]);
        assert_eq!(found, "parameter `weight`: expected a constant, found a computed fp16(2,3)");
    }
}
