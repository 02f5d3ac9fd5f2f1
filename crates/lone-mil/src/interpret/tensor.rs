//! Tensors while a program runs, and moving their elements about.

use std::borrow::Cow;
use std::sync::Arc;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::blob::{BlobError, BlobFile};
use crate::literal::{decode_floats, decode_ints, unpack};
use crate::program::{Literal, Payload};
use crate::{DType, Shape, TensorType};

/// A value of a program. Copies share the elements.
#[derive(Debug, Clone)]
pub(crate) struct Tensor<'v> {
    pub(crate) ty: TensorType,
    pub(crate) data: Data<'v>,
}

/// Row-major elements.
#[derive(Debug, Clone)]
pub(crate) enum Data<'v> {
    /// fp16 or fp32 values.
    Floats(Arc<Vec<f32>>),
    /// fp16 values where they lie: a weight in its file, a caller's buffer.
    Halves(&'v [f16]),
    /// Integers of any width, and bools as 0 and 1.
    Ints(Arc<Vec<i64>>),
    /// Integers of at most 8 bits where they lie, packed as in a file.
    Packed(&'v [u8]),
    /// A string, which only type rules look at.
    Text,
}

impl<'v> Tensor<'v> {
    pub(crate) fn floats(ty: TensorType, values: Vec<f32>) -> Self {
        debug_assert_eq!(ty.shape.elements(), values.len(), "one value per element");
        Tensor { ty, data: Data::Floats(Arc::new(values)) }
    }

    pub(crate) fn ints(ty: TensorType, values: Vec<i64>) -> Self {
        debug_assert_eq!(ty.shape.elements(), values.len(), "one value per element");
        Tensor { ty, data: Data::Ints(Arc::new(values)) }
    }

    /// The tensor of a literal, halves in place where they are aligned.
    pub(crate) fn of_literal(literal: &'v Literal, blobs: &'v BlobFile) -> Result<Self, BlobError> {
        let ty = literal.ty.clone();
        if matches!(literal.payload, Payload::Strings(_)) {
            return Ok(Tensor { ty, data: Data::Text });
        }
        let bytes = blobs.bytes(literal)?;
        if ty.dtype == DType::F16
            && let Ok(halves) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Tensor { ty, data: Data::Halves(halves) });
        }
        if ty.dtype.bits() <= 8 && ty.dtype != DType::Bool {
            return Ok(Tensor { ty, data: Data::Packed(bytes) });
        }
        let count = ty.shape.elements();
        if let Some(values) = decode_floats(ty.dtype, bytes, count) {
            return Ok(Tensor::floats(ty, values));
        }
        match decode_ints(ty.dtype, bytes, count) {
            Some(values) => Ok(Tensor::ints(ty, values)),
            None => Err(BlobError::Literal { ty, found: "values that no operation here takes".into() }),
        }
    }

    /// The values of a float tensor.
    ///
    /// # Panics
    /// If it holds no floats, which type rules exclude.
    pub(crate) fn as_floats(&self) -> Cow<'_, [f32]> {
        match &self.data {
            Data::Floats(values) => Cow::Borrowed(values),
            Data::Halves(halves) => Cow::Owned(halves.to_f32_vec()),
            Data::Ints(_) | Data::Packed(_) | Data::Text => panic!("{} holds no floats", self.ty),
        }
    }

    /// The values of an integer or bool tensor.
    ///
    /// # Panics
    /// If it holds none, which type rules exclude.
    pub(crate) fn as_ints(&self) -> Cow<'_, [i64]> {
        match &self.data {
            Data::Ints(values) => Cow::Borrowed(values),
            Data::Packed(bytes) => {
                let values = decode_ints(self.ty.dtype, bytes, self.ty.shape.elements());
                Cow::Owned(values.expect("packed literals are checked when they are made"))
            }
            Data::Floats(_) | Data::Halves(_) | Data::Text => panic!("{} holds no integers", self.ty),
        }
    }

    /// The values of a tensor of unsigned integers of at most 8 bits.
    ///
    /// # Panics
    /// If it is none, which type rules exclude.
    pub(crate) fn as_bytes(&self) -> Cow<'_, [u8]> {
        match self.data {
            Data::Packed(bytes) if self.ty.dtype == DType::U8 => Cow::Borrowed(bytes),
            Data::Packed(bytes) => {
                Cow::Owned(unpack(bytes, self.ty.dtype.bits() as usize, self.ty.shape.elements()))
            }
            _ => Cow::Owned(self.as_ints().iter().map(|&value| value as u8).collect()),
        }
    }

    /// The same elements under another shape.
    pub(crate) fn reshaped(&self, shape: &Shape) -> Self {
        let ty = TensorType::new(self.ty.dtype, shape.clone());
        Tensor { ty, data: self.data.clone() }
    }

    /// The elements at `view`, as a tensor of `shape`.
    pub(crate) fn viewed(&self, view: &View, shape: &Shape) -> Self {
        let ty = TensorType::new(self.ty.dtype, shape.clone());
        match &self.data {
            Data::Floats(values) => Tensor::floats(ty, view.of(values)),
            Data::Halves(halves) => Tensor::floats(ty, view.of(halves).to_f32_vec()),
            Data::Ints(_) | Data::Packed(_) => Tensor::ints(ty, view.of(&self.as_ints())),
            Data::Text => Tensor { ty, data: Data::Text },
        }
    }
}

/// The rows of a matrix of weights, each made into f32 when it is asked for.
pub(crate) struct Rows<'t> {
    source: RowSource<'t>,
    len: usize,
    row: Vec<f32>,
}

enum RowSource<'t> {
    Floats(&'t [f32]),
    Halves(&'t [f16]),
}

impl<'t> Rows<'t> {
    /// Rows of `len` elements.
    ///
    /// # Panics
    /// If the tensor holds no floats, which type rules exclude.
    pub(crate) fn of(tensor: &'t Tensor<'_>, len: usize) -> Self {
        let source = match &tensor.data {
            Data::Floats(values) => RowSource::Floats(values),
            Data::Halves(halves) => RowSource::Halves(halves),
            Data::Ints(_) | Data::Packed(_) | Data::Text => panic!("{} holds no floats", tensor.ty),
        };
        Rows { source, len, row: vec![0.0; len] }
    }

    /// Row number `index`.
    pub(crate) fn get(&mut self, index: usize) -> &[f32] {
        let range = index * self.len..(index + 1) * self.len;
        match self.source {
            RowSource::Floats(values) => &values[range],
            RowSource::Halves(halves) => {
                halves[range].convert_to_f32_slice(&mut self.row);
                &self.row
            }
        }
    }
}

/// Which elements of a buffer, in which order: `start + sum of index[i] * steps[i]` for every index below `dims`.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) start: usize,
    pub(crate) dims: Vec<usize>,
    pub(crate) steps: Vec<isize>,
}

impl View {
    /// A row-major buffer of `shape` with its axes in the order `perm`.
    pub(crate) fn permuted(shape: &Shape, perm: &[usize]) -> Self {
        let strides = shape.strides();
        View {
            start: 0,
            dims: perm.iter().map(|&axis| shape[axis]).collect(),
            steps: perm.iter().map(|&axis| strides[axis] as isize).collect(),
        }
    }

    /// A row-major buffer of shape `from` repeated over the axes that make it `to`, as numpy broadcasts.
    pub(crate) fn broadcast(from: &[usize], to: &[usize]) -> Self {
        let strides = Shape::new(from).strides();
        let steps = (0..to.len()).map(|axis| match (axis + from.len()).checked_sub(to.len()) {
            Some(axis) if from[axis] > 1 => strides[axis] as isize,
            _ => 0,
        });
        View { start: 0, dims: to.to_vec(), steps: steps.collect() }
    }

    /// The elements in row-major order of the view.
    ///
    /// # Panics
    /// If the view reaches beyond `source`.
    pub(crate) fn of<T: Copy>(&self, source: &[T]) -> Vec<T> {
        let (dims, steps) = self.merged();
        let Some((&width, outer)) = dims.split_last() else {
            return vec![source[self.start]];
        };
        let step = steps[dims.len() - 1];
        let mut out = Vec::with_capacity(dims.iter().product());
        let mut index = vec![0usize; outer.len()];
        let mut at = self.start as isize;
        loop {
            match step {
                1 => out.extend_from_slice(&source[at as usize..at as usize + width]),
                0 => out.extend(std::iter::repeat_n(source[at as usize], width)),
                _ => out.extend((0..width as isize).map(|i| source[(at + i * step) as usize])),
            }
            // Step the outer axes like an odometer, last axis fastest.
            let Some(axis) = (0..outer.len()).rev().find(|&axis| index[axis] + 1 < outer[axis]) else {
                return out;
            };
            index[axis] += 1;
            at += steps[axis];
            for later in axis + 1..outer.len() {
                at -= steps[later] * index[later] as isize;
                index[later] = 0;
            }
        }
    }

    /// The same view with as few axes as it can have: those of 1 dropped, those that run on merged.
    fn merged(&self) -> (Vec<usize>, Vec<isize>) {
        let (mut dims, mut steps): (Vec<usize>, Vec<isize>) = (Vec::new(), Vec::new());
        for (&dim, &step) in self.dims.iter().zip(&self.steps).filter(|&(&dim, _)| dim != 1) {
            match (dims.last_mut(), steps.last_mut()) {
                (Some(last_dim), Some(last_step)) if *last_step == step * dim as isize => {
                    *last_dim *= dim;
                    *last_step = step;
                }
                _ => {
                    dims.push(dim);
                    steps.push(step);
                }
            }
        }
        (dims, steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(n: usize) -> Vec<usize> {
        (0..n).collect()
    }

    #[test]
    fn a_permuted_view_is_a_transpose() {
        let view = View::permuted(&Shape::from([2, 3]), &[1, 0]);
        assert_eq!(view.of(&counting(6)), [0, 3, 1, 4, 2, 5]);
        let view = View::permuted(&Shape::from([2, 1, 3, 2]), &[0, 2, 1, 3]);
        assert_eq!(view.of(&counting(12)), counting(12), "moving an axis of 1 moves nothing");
        let view = View::permuted(&Shape::from([2, 3, 2]), &[2, 0, 1]);
        assert_eq!(view.of(&counting(12)), [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
    }

    #[test]
    fn a_broadcast_repeats_axes_of_one_and_missing_axes() {
        assert_eq!(View::broadcast(&[2, 1], &[2, 3]).of(&[7, 8]), [7, 7, 7, 8, 8, 8]);
        assert_eq!(View::broadcast(&[2], &[2, 2]).of(&[7, 8]), [7, 8, 7, 8]);
        assert_eq!(View::broadcast(&[], &[2, 2]).of(&[7]), [7; 4]);
        assert_eq!(View::broadcast(&[], &[]).of(&[7]), [7]);
    }

    #[test]
    fn steps_may_go_backwards() {
        let view = View { start: 5, dims: vec![2, 2], steps: vec![-3, -1] };
        assert_eq!(view.of(&counting(6)), [5, 4, 2, 1]);
    }
}
