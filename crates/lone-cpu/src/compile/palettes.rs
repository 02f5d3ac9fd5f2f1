//! Weights stored as indices into palettes: constants that stay as they are stored for the linear layers that read
//! them, and are expanded for everything else.

use half::f16;
use lone_mil::{BlobError, BlobFile, DType, Literal, Payload, TensorType};

use super::constants::held;
use crate::kernels::IndexBits;

/// Element (i, …) is the entry at its index in palette `i / group_rows`, times scale i.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Palettes {
    pub(crate) bits: IndexBits,
    /// `(M,K…)`, in the weight file.
    pub(crate) indices: Literal,
    /// `(M / group_rows, 1…, entries, 1)`
    pub(crate) palettes: Literal,
    pub(crate) group_rows: usize,
    /// `(M, 1…)`
    pub(crate) scales: Option<Literal>,
}

impl Palettes {
    /// What `constexpr_lut_to_dense` makes of `indices` and `lut`, if palettes are fp16 and for whole rows, and rows
    /// of indices for whole bytes.
    pub(crate) fn of(indices: &Literal, lut: &Literal) -> Option<Self> {
        let bits = match indices.ty.dtype {
            DType::U4 => IndexBits::Four,
            DType::U6 => IndexBits::Six,
            DType::U8 => IndexBits::Eight,
            _ => return None,
        };
        let dims = &indices.ty.shape;
        let (&rows, columns) = dims.split_first()?;
        let (&groups, rest) = lut.ty.shape.split_first()?;
        let ones = rest.iter().filter(|&&dim| dim == 1).count();
        let by_rows = lut.ty.shape.len() == dims.len() + 2
            && rest[dims.len() - 1] == bits.entries()
            && ones == rest.len() - 1;
        let row_bits = columns.iter().product::<usize>() * bits.bits();
        let fits = by_rows
            && lut.ty.dtype == DType::F16
            && groups > 0
            && rows > 0
            && row_bits.is_multiple_of(8)
            && matches!(indices.payload, Payload::Blob(_));
        fits.then(|| Palettes {
            bits,
            indices: indices.clone(),
            palettes: lut.clone(),
            group_rows: rows / groups,
            scales: None,
        })
    }

    /// What `constexpr_blockwise_shift_scale` makes of it with `scale` and no offset, if that is a factor a row.
    pub(crate) fn scaled(&self, scale: &Literal) -> Option<Self> {
        let (rows, shape) = (self.indices.ty.shape[0], &scale.ty.shape);
        let by_rows = shape.first() == Some(&rows) && shape.elements() == rows;
        let fits = by_rows && scale.ty.dtype == DType::F16 && self.scales.is_none();
        fits.then(|| Palettes { scales: Some(scale.clone()), ..self.clone() })
    }

    /// The type of what it stands for.
    pub(crate) fn ty(&self) -> TensorType {
        TensorType::f16(self.indices.ty.shape.to_vec())
    }

    /// The weights themselves.
    ///
    /// # Errors
    /// [`BlobError`] for a part that is not in `blobs` as its type says.
    pub(crate) fn expanded(&self, blobs: &BlobFile) -> Result<Literal, BlobError> {
        let floats = |literal: &Literal| {
            Ok::<_, BlobError>(held(literal, blobs)?.to_floats().expect("checked to be fp16"))
        };
        let palettes = floats(&self.palettes)?;
        let scales = self.scales.as_ref().map(floats).transpose()?;
        let indices = held(&self.indices, blobs)?.to_ints().expect("indices are integers");
        let ty = self.ty();
        let cols = (ty.shape.elements() / ty.shape[0].max(1)).max(1);
        let mut bytes = Vec::with_capacity(2 * indices.len());
        for (row, indices) in indices.chunks(cols).enumerate() {
            let palette = &palettes[row / self.group_rows * self.bits.entries()..];
            let scale = scales.as_ref().map_or(1.0, |scales| scales[row]);
            let weights = indices.iter().map(|&index| f16::from_f32(palette[index as usize] * scale));
            bytes.extend(weights.flat_map(f16::to_le_bytes));
        }
        Ok(Literal::from_bytes(ty, &bytes))
    }
}
