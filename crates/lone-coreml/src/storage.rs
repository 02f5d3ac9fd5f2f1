//! What kind of memory an array gets: a decision that a measurement on a Mac may overturn, in one place.

use lone_mil::{DType, TensorType};

/// The kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// An IOSurface, which the Neural Engine reads and writes without a copy: rows of the last axis, each padded.
    Surface {
        /// Elements a row.
        width: usize,
        /// All other axes.
        height: usize,
    },
    /// Memory that Core ML allocates as it likes.
    Plain,
}

/// The most rows of a surface. It is the largest extent of the engine's height; larger surfaces are unproven.
const MOST_ROWS: usize = 16_384;

impl Storage {
    /// Of an input or output of this type.
    pub(crate) fn of(ty: &TensorType) -> Self {
        let Some((&width, others)) = ty.shape.split_last() else { return Storage::Plain };
        let height = others.iter().product();
        if ty.dtype == DType::F16 && width > 0 && (1..=MOST_ROWS).contains(&height) {
            Storage::Surface { width, height }
        } else {
            Storage::Plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lone_mil::Shape;

    #[test]
    fn halves_get_surfaces_unless_they_have_too_many_rows() {
        let surface = Storage::Surface { width: 64, height: 1024 };
        assert_eq!(Storage::of(&TensorType::f16([1, 8, 128, 64])), surface);
        assert_eq!(Storage::of(&TensorType::f16([7])), Storage::Surface { width: 7, height: 1 });
        assert_eq!(Storage::of(&TensorType::f16([1, 16_385, 1, 1])), Storage::Plain);
        let single = TensorType { dtype: DType::F32, shape: Shape::from([1, 8]) };
        assert_eq!(Storage::of(&single), Storage::Plain);
    }
}
