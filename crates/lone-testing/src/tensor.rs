//! Owned buffers with shapes, to feed to a backend and to compare.

use half::f16;
use lone_mil::{DType, Shape, TensorMut, TensorRef, TensorType};

/// A dense row-major tensor of one of the types that functions take and give.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Shape,
    data: Data,
}

#[derive(Debug, Clone, PartialEq)]
enum Data {
    F16(Vec<f16>),
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl Tensor {
    /// An fp16 tensor of these values, rounded to the nearest.
    ///
    /// # Panics
    /// If there are not as many values as the shape has elements; likewise below.
    pub fn f16(shape: impl Into<Shape>, values: &[f32]) -> Self {
        let data = Data::F16(values.iter().map(|&value| f16::from_f32(value)).collect());
        Tensor { shape: shape.into(), data }.checked()
    }

    /// An fp32 tensor.
    pub fn f32(shape: impl Into<Shape>, values: &[f32]) -> Self {
        Tensor { shape: shape.into(), data: Data::F32(values.to_vec()) }.checked()
    }

    /// An int32 tensor.
    pub fn i32(shape: impl Into<Shape>, values: &[i32]) -> Self {
        Tensor { shape: shape.into(), data: Data::I32(values.to_vec()) }.checked()
    }

    /// A tensor of `ty` whose elements are 0.
    pub fn zeros(ty: &TensorType) -> Self {
        let n = ty.shape.elements();
        let data = match ty.dtype {
            DType::F16 => Data::F16(vec![f16::ZERO; n]),
            DType::F32 => Data::F32(vec![0.0; n]),
            DType::I32 => Data::I32(vec![0; n]),
            other => panic!("functions neither take nor give {other}"),
        };
        Tensor { shape: ty.shape.clone(), data }
    }

    fn checked(self) -> Self {
        assert_eq!(self.values().len(), self.shape.elements(), "one value per element of {}", self.shape);
        self
    }

    /// Its type.
    pub fn ty(&self) -> TensorType {
        let dtype = match self.data {
            Data::F16(_) => DType::F16,
            Data::F32(_) => DType::F32,
            Data::I32(_) => DType::I32,
        };
        TensorType::new(dtype, self.shape.clone())
    }

    /// Its values, all of which f64 holds.
    pub fn values(&self) -> Vec<f64> {
        match &self.data {
            Data::F16(values) => values.iter().map(|&value| value.into()).collect(),
            Data::F32(values) => values.iter().map(|&value| value.into()).collect(),
            Data::I32(values) => values.iter().map(|&value| value.into()).collect(),
        }
    }

    /// To be read by a backend.
    pub fn as_ref(&self) -> TensorRef<'_> {
        match &self.data {
            Data::F16(values) => TensorRef::F16(values),
            Data::F32(values) => TensorRef::F32(values),
            Data::I32(values) => TensorRef::I32(values),
        }
    }

    /// To be filled by a backend.
    pub fn as_mut(&mut self) -> TensorMut<'_> {
        match &mut self.data {
            Data::F16(values) => TensorMut::F16(values),
            Data::F32(values) => TensorMut::F32(values),
            Data::I32(values) => TensorMut::I32(values),
        }
    }
}
