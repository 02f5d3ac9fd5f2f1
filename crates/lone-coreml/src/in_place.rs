//! Which inputs Core ML reads in the caller's memory, and which are copied for it.

use lone_mil::TensorRef;

/// A page, on Apple silicon.
const PAGE_BYTES: usize = 16_384;

/// Whether Core ML is given the caller's memory instead of a copy: whole pages, as caches are. Smaller things are
/// cheaper to copy than to describe.
pub(crate) fn is_read_in_place(data: &TensorRef<'_>) -> bool {
    let (start, bytes) = extent(data);
    start.is_multiple_of(PAGE_BYTES) && bytes >= PAGE_BYTES
}

/// Address and length in bytes.
fn extent(data: &TensorRef<'_>) -> (usize, usize) {
    match data {
        TensorRef::F16(data) => (data.as_ptr().addr(), size_of_val(*data)),
        TensorRef::F32(data) => (data.as_ptr().addr(), size_of_val(*data)),
        TensorRef::I32(data) => (data.as_ptr().addr(), size_of_val(*data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_are_read_in_place_and_parts_of_pages_are_not() {
        let memory = vec![half::f16::ZERO; 2 * PAGE_BYTES];
        let start = memory.as_ptr().align_offset(PAGE_BYTES);
        let page = PAGE_BYTES / 2;
        assert!(is_read_in_place(&TensorRef::F16(&memory[start..start + page])));
        assert!(!is_read_in_place(&TensorRef::F16(&memory[start..start + page - 1])));
        assert!(!is_read_in_place(&TensorRef::F16(&memory[start + 1..start + 1 + page])));
    }
}
