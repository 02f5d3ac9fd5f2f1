//! Products of matrices.

use super::call::broadcast;
use super::param::{BOOL, FLOAT, FLOAT_VECTOR, Fallback, NUMBER};
use super::{Call, OpError, OpSpec, Param, row};
use crate::TensorType;

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
