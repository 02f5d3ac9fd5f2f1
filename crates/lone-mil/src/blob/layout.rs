//! Where blobs go: each record at a multiple of 64, its data right behind it.

use crate::{BlobError, DType};

use super::record::{ALIGNMENT, RECORD_BYTES};

/// A blob in a `weight.bin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlobRef {
    /// Offset of the metadata record, which is what a program stores.
    pub offset: u64,
    /// Element type.
    pub dtype: DType,
    /// Number of elements.
    pub elements: usize,
}

impl BlobRef {
    /// Offset of the first data byte.
    pub fn data_offset(&self) -> u64 {
        self.offset + RECORD_BYTES
    }

    /// Size of the data in bytes.
    pub fn data_bytes(&self) -> u64 {
        let bytes = self.dtype.packed_bytes(self.elements);
        bytes.expect("a blob is made only with a size that fits") as u64
    }

    /// Unused high bits of the last data byte.
    pub fn padding_bits(&self) -> u32 {
        (self.data_bytes() * 8 - self.elements as u64 * u64::from(self.dtype.bits())) as u32
    }
}

/// Gives out the places of blobs in file order, before or while they are written.
#[derive(Debug, Clone)]
pub struct BlobLayout {
    end: u64,
    count: u32,
}

impl Default for BlobLayout {
    fn default() -> Self {
        BlobLayout { end: super::record::HEADER_BYTES, count: 0 }
    }
}

impl BlobLayout {
    /// The place of the next blob.
    ///
    /// # Errors
    /// [`BlobError::NotStorable`] for a type that never stands in a blob, [`BlobError::TooLarge`] for an overflow.
    pub fn place(&mut self, dtype: DType, elements: usize) -> Result<BlobRef, BlobError> {
        let too_large = || BlobError::TooLarge { dtype, elements };
        dtype.blob_code().ok_or(BlobError::NotStorable { dtype })?;
        let bytes = dtype.packed_bytes(elements).ok_or_else(too_large)? as u64;
        let offset = self.end.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_large)?;
        let data = offset.checked_add(RECORD_BYTES).ok_or_else(too_large)?;
        let end = data.checked_add(bytes).ok_or_else(too_large)?;
        let count = self.count.checked_add(1).ok_or_else(too_large)?;
        (self.end, self.count) = (end, count);
        Ok(BlobRef { offset, dtype, elements })
    }

    /// Number of blobs placed so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Size of a file that ends here, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_at_multiples_of_64_and_nothing_follows_the_last_blob() {
        let mut layout = BlobLayout::default();
        assert_eq!(layout.place(DType::F16, 3).unwrap().offset, 64);
        let second = layout.place(DType::U3, 5).unwrap();
        assert_eq!((second.offset, second.data_offset()), (192, 256));
        assert_eq!((second.data_bytes(), second.padding_bits()), (2, 1));
        assert_eq!((layout.count(), layout.file_bytes()), (2, 258));
    }

    #[test]
    fn types_and_sizes_that_no_blob_can_have_are_refused() {
        let mut layout = BlobLayout::default();
        assert!(matches!(layout.place(DType::Bool, 1), Err(BlobError::NotStorable { dtype: DType::Bool })));
        assert!(matches!(layout.place(DType::F16, usize::MAX), Err(BlobError::TooLarge { .. })));
        assert_eq!(layout.count(), 0);
    }
}
