//! Static shapes and tensor types, printed the way MIL's text prints them.

use std::fmt;
use std::ops::Deref;

use crate::DType;

/// Static dimensions, outermost first; rank 0 is a scalar.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// The shape with these dimensions.
    pub fn new(dims: impl Into<Vec<usize>>) -> Self {
        Shape(dims.into())
    }

    /// Rank 0.
    pub fn scalar() -> Self {
        Shape(Vec::new())
    }

    /// The number of elements; `None` if it overflows.
    pub fn checked_elements(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
    }

    /// The number of elements of a shape that has been checked not to overflow.
    pub fn elements(&self) -> usize {
        self.checked_elements().expect("shapes are checked when values are made")
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.0.len()];
        for axis in (1..self.0.len()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis];
        }
        strides
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape(dims.to_vec())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Shape(dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, dim) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str(")")
    }
}

/// Element type and static shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Shape,
}

impl TensorType {
    /// A tensor of `dtype` with dimensions `shape`.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        TensorType { dtype, shape: shape.into() }
    }

    /// An fp16 tensor.
    pub fn f16(shape: impl Into<Shape>) -> Self {
        TensorType::new(DType::F16, shape)
    }

    /// A scalar of `dtype`.
    pub fn scalar(dtype: DType) -> Self {
        TensorType::new(dtype, Shape::scalar())
    }

    /// Bytes of the packed values; `None` if that overflows.
    pub fn packed_bytes(&self) -> Option<usize> {
        self.shape.checked_elements().and_then(|n| self.dtype.packed_bytes(n))
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// What a value of a program can be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// An ordinary tensor.
    Tensor(TensorType),
    /// A state that `read_state` and `write_state` reach. Read, written and printed; no backend here runs it.
    State(TensorType),
}

impl ValueType {
    /// The tensor type, of the value itself or of what the state holds.
    pub fn tensor(&self) -> &TensorType {
        match self {
            ValueType::Tensor(ty) | ValueType::State(ty) => ty,
        }
    }
}

impl From<TensorType> for ValueType {
    fn from(ty: TensorType) -> Self {
        ValueType::Tensor(ty)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Tensor(ty) => write!(f, "{ty}"),
            ValueType::State(ty) => write!(f, "state<{ty}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_mil_text() {
        assert_eq!(TensorType::f16([1, 64, 1, 8]).to_string(), "fp16(1,64,1,8)");
        assert_eq!(TensorType::scalar(DType::I32).to_string(), "int32()");
        assert_eq!(ValueType::State(TensorType::f16([2])).to_string(), "state<fp16(2)>");
    }

    #[test]
    fn an_overflowing_shape_has_no_element_count() {
        assert_eq!(Shape::from([usize::MAX, 2]).checked_elements(), None);
        assert_eq!(Shape::scalar().elements(), 1);
        assert_eq!(Shape::from([2, 3, 4]).strides(), vec![12, 4, 1]);
    }
}
