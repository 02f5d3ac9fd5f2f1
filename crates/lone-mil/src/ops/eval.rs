//! What the meaning of an operation may look at: its call, the values of its arguments, and how numbers behave.

use std::borrow::Cow;

use super::{Call, OpError};
use crate::interpret::{Binary, Data, Numerics, Tensor, Unary, View};
use crate::{DType, Shape, TensorType};

/// The results of an operation, or which of its values it cannot take.
pub(crate) type Results<'v> = Result<Vec<Tensor<'v>>, OpError>;

/// The meaning of an operation.
pub(crate) type EvalFn = for<'v> fn(&Eval<'_, 'v>) -> Results<'v>;

/// One execution of an operation.
pub(crate) struct Eval<'e, 'v> {
    pub(crate) call: &'e Call,
    /// One entry per parameter, as in the call; none for defaults that were not written out.
    pub(crate) args: &'e [Vec<Tensor<'v>>],
    pub(crate) results: &'e [TensorType],
    pub(crate) numerics: &'e dyn Numerics,
}

impl<'e, 'v> Eval<'e, 'v> {
    fn values(&self, name: &str) -> &'e [Tensor<'v>] {
        &self.args[self.call.spec().position(name).expect("rows name their own parameters")]
    }

    /// A parameter that is always written out.
    pub(super) fn tensor(&self, name: &str) -> &'e Tensor<'v> {
        &self.values(name)[0]
    }

    /// All values of a variadic parameter.
    pub(super) fn tensors(&self, name: &str) -> &'e [Tensor<'v>] {
        self.values(name)
    }

    pub(super) fn shape(&self, name: &str) -> &'e Shape {
        &self.tensor(name).ty.shape
    }

    pub(super) fn floats(&self, name: &str) -> Cow<'e, [f32]> {
        self.tensor(name).as_floats()
    }

    pub(super) fn ints(&self, name: &str) -> Cow<'e, [i64]> {
        self.tensor(name).as_ints()
    }

    /// The values of an optional float parameter.
    pub(super) fn opt_floats(&self, name: &str) -> Option<Cow<'e, [f32]>> {
        self.values(name).first().map(Tensor::as_floats)
    }

    /// A float scalar, or its default.
    pub(super) fn float(&self, name: &str) -> f32 {
        match self.opt_floats(name) {
            Some(values) => values[0],
            None => {
                let default = self.call.literal(name).and_then(crate::Literal::to_floats);
                default.expect("float scalars are written out or have a default")[0]
            }
        }
    }

    pub(super) fn holds_floats(&self, name: &str) -> bool {
        self.tensor(name).ty.dtype.is_float()
    }

    /// Type of the first result.
    pub(super) fn result(&self) -> &'e TensorType {
        &self.results[0]
    }

    /// Computed floats, rounded to what the result can hold.
    pub(super) fn computed(&self, mut values: Vec<f32>) -> Results<'v> {
        let ty = self.result().clone();
        self.numerics.store(ty.dtype, &mut values);
        Ok(vec![Tensor::floats(ty, values)])
    }

    /// Computed integers, wrapped to what the result can hold.
    pub(super) fn computed_ints(&self, mut values: Vec<i64>) -> Results<'v> {
        let ty = self.result().clone();
        values.iter_mut().for_each(|value| *value = wrap(ty.dtype, *value));
        Ok(vec![Tensor::ints(ty, values)])
    }

    /// Values that were only moved.
    pub(super) fn moved(&self, tensor: Tensor<'v>) -> Results<'v> {
        debug_assert_eq!(tensor.ty, *self.result(), "moving keeps to the inferred type");
        Ok(vec![tensor])
    }

    /// `f` of every element, for rows that take integers too: `of_int` computes those.
    pub(super) fn unary(&self, f: Unary, of_int: impl Fn(i64) -> i64) -> Results<'v> {
        if self.holds_floats("x") {
            return self.unary_of(f, &self.floats("x"));
        }
        self.computed_ints(self.ints("x").iter().map(|&x| of_int(x)).collect())
    }

    /// `f` of every one of `x`.
    pub(super) fn unary_of(&self, f: Unary, x: &[f32]) -> Results<'v> {
        let mut out = vec![0.0; x.len()];
        self.numerics.unary(f, x, &mut out);
        self.computed(out)
    }

    /// `f` of every pair of elements of `x` and `y`, broadcast; `of_ints` computes integers.
    pub(super) fn binary(&self, f: Binary, of_ints: impl Fn(i64, i64) -> i64) -> Results<'v> {
        let shape = &self.result().shape;
        if self.holds_floats("x") {
            let (x, y) = (self.floats("x"), self.floats("y"));
            let (x, y) = (spread(&x, self.shape("x"), shape), spread(&y, self.shape("y"), shape));
            let mut out = vec![0.0; x.len()];
            self.numerics.binary(f, &x, &y, &mut out);
            return self.computed(out);
        }
        let (x, y) = (self.ints("x"), self.ints("y"));
        let (x, y) = (spread(&x, self.shape("x"), shape), spread(&y, self.shape("y"), shape));
        self.computed_ints(x.iter().zip(y.iter()).map(|(&x, &y)| of_ints(x, y)).collect())
    }

    /// A tensor's elements with `axes` last, as rows over them, together with the order of axes that this is.
    pub(super) fn with_last(tensor: &Tensor<'_>, axes: &[usize]) -> (Tensor<'v>, Vec<usize>) {
        let mut perm: Vec<usize> = (0..tensor.ty.shape.len()).filter(|axis| !axes.contains(axis)).collect();
        perm.extend(axes);
        let view = View::permuted(&tensor.ty.shape, &perm);
        let shape = Shape::new(view.dims.clone());
        let ty = TensorType::new(tensor.ty.dtype, shape);
        let moved = match &tensor.data {
            Data::Ints(_) | Data::Packed(_) => Tensor::ints(ty, view.of(&tensor.as_ints())),
            _ => Tensor::floats(ty, view.of(&tensor.as_floats())),
        };
        (moved, perm)
    }
}

/// `values` of shape `from`, broadcast to `to`.
pub(super) fn spread<'a, T: Copy>(values: &'a [T], from: &Shape, to: &Shape) -> Cow<'a, [T]> {
    if from.elements() == to.elements() {
        Cow::Borrowed(values)
    } else {
        Cow::Owned(View::broadcast(from, to).of(values))
    }
}

/// `value` as an integer type stores it: its lowest bits.
pub(super) fn wrap(dtype: DType, value: i64) -> i64 {
    match dtype {
        DType::Bool => i64::from(value != 0),
        DType::I8 => i64::from(value as i8),
        DType::U8 => i64::from(value as u8),
        DType::I16 => i64::from(value as i16),
        DType::U16 => i64::from(value as u16),
        DType::U32 => i64::from(value as u32),
        DType::I64 => value,
        _ => i64::from(value as i32),
    }
}
