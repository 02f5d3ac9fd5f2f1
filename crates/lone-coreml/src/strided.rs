//! Between dense row-major buffers and arrays whose rows the framework pads.
//!
//! ```text
//! dense    a b c d e f                  shape (2, 3), strides (3, 1)
//! strided  a b c · · d e f · ·          shape (2, 3), strides (5, 1)
//! ```

use bytemuck::Pod;
use lone_mil::{TensorMut, TensorRef, TensorType};

use crate::{Array, Fault};

/// Copies dense `data` of type `ty` into `array`.
pub(crate) fn fill(array: &mut impl Array, data: &TensorRef<'_>, ty: &TensorType) -> Result<(), Fault> {
    let mut copied = Ok(());
    array.write(&mut |bytes, strides| {
        copied = match data {
            TensorRef::F16(data) => scatter(data, bytes, &ty.shape, strides),
            TensorRef::F32(data) => scatter(data, bytes, &ty.shape, strides),
            TensorRef::I32(data) => scatter(data, bytes, &ty.shape, strides),
        };
    })?;
    copied
}

/// Copies `array` into dense `data` of type `ty`.
pub(crate) fn take(array: &impl Array, data: &mut TensorMut<'_>, ty: &TensorType) -> Result<(), Fault> {
    let mut copied = Ok(());
    array.read(&mut |bytes, strides| {
        copied = match data {
            TensorMut::F16(data) => gather(bytes, data, &ty.shape, strides),
            TensorMut::F32(data) => gather(bytes, data, &ty.shape, strides),
            TensorMut::I32(data) => gather(bytes, data, &ty.shape, strides),
        };
    })?;
    copied
}

fn scatter<T: Pod>(dense: &[T], bytes: &mut [u8], shape: &[usize], strides: &[usize]) -> Result<(), Fault> {
    let rows = Rows::new::<T>(shape, strides, bytes.len())?;
    rows.each(|at, row| {
        let row = &dense[row];
        if rows.step == 1 {
            bytes[at * size_of::<T>()..][..size_of_val(row)].copy_from_slice(bytemuck::cast_slice(row));
        } else {
            for (i, element) in row.iter().enumerate() {
                let start = (at + i * rows.step) * size_of::<T>();
                bytes[start..start + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(element));
            }
        }
    });
    Ok(())
}

fn gather<T: Pod>(bytes: &[u8], dense: &mut [T], shape: &[usize], strides: &[usize]) -> Result<(), Fault> {
    let rows = Rows::new::<T>(shape, strides, bytes.len())?;
    rows.each(|at, row| {
        let row = &mut dense[row];
        if rows.step == 1 {
            let bytes = &bytes[at * size_of::<T>()..][..size_of_val(row)];
            bytemuck::cast_slice_mut(row).copy_from_slice(bytes);
        } else {
            for (i, element) in row.iter_mut().enumerate() {
                let start = (at + i * rows.step) * size_of::<T>();
                bytemuck::bytes_of_mut(element).copy_from_slice(&bytes[start..start + size_of::<T>()]);
            }
        }
    });
    Ok(())
}

/// The runs along an array: its rows, or, where rows have one element, the elements along the last longer axis.
struct Rows<'a> {
    /// Axes before the runs.
    shape: &'a [usize],
    strides: &'a [usize],
    /// Elements a run.
    len: usize,
    /// Elements from one to the next.
    step: usize,
}

impl<'a> Rows<'a> {
    /// # Errors
    /// When the strides do not fit the shape, or lead out of `bytes` bytes of `T`.
    fn new<T>(shape: &'a [usize], strides: &'a [usize], bytes: usize) -> Result<Self, Fault> {
        if shape.len() != strides.len() || shape.len() > MOST_AXES {
            return Err(Fault(format!("an array of shape {shape:?} with strides {strides:?}")));
        }
        let reach = shape.iter().zip(strides).try_fold(0usize, |reach, (&extent, &stride)| {
            extent.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)
        });
        let end = reach.and_then(|reach| reach.checked_add(1)?.checked_mul(size_of::<T>()));
        if end.is_none_or(|end| end > bytes) {
            return Err(Fault(format!("{bytes} bytes for shape {shape:?} with strides {strides:?}")));
        }
        let axis = shape.iter().rposition(|&extent| extent > 1).unwrap_or(0);
        let (len, step) = shape.get(axis).map_or((1, 1), |&len| (len, strides[axis]));
        Ok(Rows { shape: &shape[..axis], strides: &strides[..axis], len, step })
    }

    /// Calls `visit` with where each run begins in the array, in elements, and its range in the dense buffer.
    fn each(&self, mut visit: impl FnMut(usize, std::ops::Range<usize>)) {
        let count: usize = self.shape.iter().product();
        let mut index = [0usize; MOST_AXES];
        let mut at = 0;
        for run in 0..count {
            visit(at, run * self.len..(run + 1) * self.len);
            for axis in (0..self.shape.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.shape[axis] * self.strides[axis];
                index[axis] = 0;
            }
        }
    }
}

/// Core ML has no tensors of more.
const MOST_AXES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(shape: &[usize], strides: &[usize], room: usize) -> (Vec<i32>, Vec<i32>) {
        let dense: Vec<i32> = (1..=shape.iter().product::<usize>() as i32).collect();
        let mut array = vec![0i32; room];
        scatter(&dense, bytemuck::cast_slice_mut(&mut array), shape, strides).unwrap();
        let mut back = vec![0; dense.len()];
        gather(bytemuck::cast_slice(&array), &mut back, shape, strides).unwrap();
        assert_eq!(back, dense);
        (dense, array)
    }

    #[test]
    fn rows_go_where_the_strides_say_and_nowhere_else() {
        let (_, array) = round_trip(&[2, 3], &[5, 1], 8);
        assert_eq!(array, [1, 2, 3, 0, 0, 4, 5, 6]);
    }

    #[test]
    fn single_columns_lie_a_padded_row_apart() {
        let (_, array) = round_trip(&[1, 3, 1, 1], &[12, 4, 4, 1], 12);
        assert_eq!(array, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn axes_in_any_order_and_scalars_come_back() {
        round_trip(&[2, 3, 4, 5], &[1, 2, 6, 24], 120);
        round_trip(&[1, 1], &[9, 9], 1);
        round_trip(&[2, 2, 2, 2, 2], &[100, 50, 20, 8, 2], 181);
    }

    #[test]
    fn an_array_that_is_too_small_or_of_another_rank_is_refused() {
        let mut bytes = [0; 4 * 7];
        let error = scatter(&[0i32; 6], &mut bytes, &[2, 3], &[5, 1]).unwrap_err();
        assert_eq!(error.0, "28 bytes for shape [2, 3] with strides [5, 1]");
        assert!(scatter(&[0i32; 6], &mut bytes, &[2, 3], &[1]).unwrap_err().0.contains("strides [1]"));
        assert!(gather(&bytes, &mut [0i32; 6], &[2, 3], &[usize::MAX, 1]).is_err());
    }
}
