//! The fp16 tensors the engine owns: caches, masks, tables, and what passes return.
//!
//! Every one of them is made here, so that memory a device prefers can take the place of ordinary memory. Caches lie
//! in pages of their own, which a device reads where they lie and the system can be asked to keep.

use std::fmt;
use std::ops::{Deref, DerefMut};

use half::f16;
use lone_mil::{TensorMut, TensorRef};
use memmap2::MmapMut;

use crate::RunError;

/// Smaller tensors do not get pages of their own: a page of Apple silicon.
pub(crate) const PAGE_BYTES: usize = 16_384;

/// A dense row-major fp16 tensor; its shape is its owner's business. Copies lie in ordinary memory.
pub(crate) struct Buffer(Memory);

enum Memory {
    Heap(Vec<f16>),
    Pages(MmapMut),
}

impl Buffer {
    /// No elements.
    pub(crate) fn empty() -> Self {
        Buffer(Memory::Heap(Vec::new()))
    }

    /// `elements` zeros. Pages that are never written cost nothing.
    pub(crate) fn zeroed(elements: usize) -> Result<Self, RunError> {
        let memory = bytemuck::allocation::try_zeroed_vec(elements).map(Memory::Heap);
        memory.map(Buffer).map_err(|()| RunError::Memory { bytes: bytes_of(elements) })
    }

    /// The same for a cache: in pages of its own if it is worth them, and locked in memory if it is to be `wired`.
    pub(crate) fn for_cache(elements: usize, wired: bool) -> Result<Self, RunError> {
        let bytes = bytes_of(elements);
        if bytes < PAGE_BYTES as u64 && !wired {
            return Buffer::zeroed(elements);
        }
        let length = usize::try_from(bytes).map_err(|_| RunError::Memory { bytes })?;
        let pages = MmapMut::map_anon(length).map_err(|_| RunError::Memory { bytes })?;
        if wired {
            lock(&pages).map_err(|source| RunError::Wire { bytes, source })?;
        }
        Ok(Buffer(Memory::Pages(pages)))
    }

    pub(crate) fn as_ref(&self) -> TensorRef<'_> {
        TensorRef::F16(self)
    }

    pub(crate) fn as_mut(&mut self) -> TensorMut<'_> {
        TensorMut::F16(self)
    }

    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(self.len())
    }
}

fn bytes_of(elements: usize) -> u64 {
    2 * elements as u64
}

#[cfg(unix)]
fn lock(pages: &MmapMut) -> std::io::Result<()> {
    pages.lock()
}

#[cfg(not(unix))]
fn lock(_: &MmapMut) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Buffer(Memory::Heap(self.to_vec()))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} x fp16)", self.len())
    }
}

impl Deref for Buffer {
    type Target = [f16];

    fn deref(&self) -> &[f16] {
        match &self.0 {
            Memory::Heap(data) => data,
            Memory::Pages(pages) => bytemuck::cast_slice(pages),
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f16] {
        match &mut self.0 {
            Memory::Heap(data) => data,
            Memory::Pages(pages) => bytemuck::cast_slice_mut(pages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_worth_a_page_begins_with_one_and_holds_just_its_elements() {
        let page = PAGE_BYTES / 2;
        let mut buffer = Buffer::for_cache(page + 1, false).unwrap();
        assert!(buffer.as_ptr().addr().is_multiple_of(4096));
        assert_eq!((buffer.len(), buffer.bytes()), (page + 1, PAGE_BYTES as u64 + 2));
        assert!(buffer.iter().all(|element| *element == f16::ZERO));
        buffer[page] = f16::ONE;
        assert_eq!(buffer.clone()[page], f16::ONE);
        assert!(matches!(Buffer::for_cache(page - 1, false).unwrap().0, Memory::Heap(_)));
    }

    #[cfg(unix)]
    #[test]
    fn a_wired_cache_is_locked_or_says_how_much_could_not_be() {
        match Buffer::for_cache(10, true) {
            Ok(buffer) => assert!(matches!(buffer.0, Memory::Pages(_)), "only pages can be locked"),
            Err(error) => {
                assert!(
                    error.to_string().starts_with("cannot lock a session's caches, 20 bytes, in memory: "),
                    "{error}"
                );
            }
        }
    }
}
