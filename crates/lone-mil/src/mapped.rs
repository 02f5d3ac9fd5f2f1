//! A file's bytes, mapped read-only: the one place of this crate, and of those built on it, that maps memory.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;

use memmap2::{Mmap, MmapMut};

/// The usual size of a huge page.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// The bytes of a file, in the page cache rather than in this process's own memory; they begin on a page boundary.
#[derive(Debug)]
pub struct Mapped(Mmap);

impl Mapped {
    /// Maps the regular file at `path`.
    ///
    /// # Errors
    /// As the operating system says; `InvalidInput` for anything but a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        // SAFETY: the mapping is read-only and private to this process. A bundle's files are written once, to a
        // place nobody reads yet, and never changed afterwards; that they stay so while open is the caller's part.
        #[expect(unsafe_code, reason = "the one mmap of this crate")]
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Mapped(map))
    }

    /// A copy of `bytes`, aligned as a file's would be.
    ///
    /// # Errors
    /// As the operating system says when it has no memory left.
    pub fn copy_of(bytes: &[u8]) -> io::Result<Self> {
        let mut map = MmapMut::map_anon(bytes.len())?;
        map.copy_from_slice(bytes);
        map.make_read_only().map(Mapped)
    }

    /// A copy in memory of its own, of the largest pages the system gives: read faster, but not shared with anybody. Zeros stand for
    /// the ranges of `without`, one after the other, and take up no memory where they are long.
    ///
    /// # Errors
    /// As the operating system says when it has no memory left.
    ///
    /// # Panics
    /// If the ranges overlap, or are not there.
    pub fn copied_to_huge_pages(&self, without: &[Range<usize>]) -> io::Result<Self> {
        let mut map = MmapMut::map_anon(self.len())?;
        let ends = without.iter().map(|range| range.start).chain([self.len()]);
        let starts = [0].into_iter().chain(without.iter().map(|range| range.end));
        for part in starts.zip(ends).map(|(start, end)| start..end) {
            // Not for little parts, since a whole page of that kind lies around them. A kernel that knows no such pages leaves
            // things as they are.
            #[cfg(target_os = "linux")]
            if part.len() >= HUGE_PAGE {
                map.advise_range(memmap2::Advice::HugePage, part.start, part.len()).ok();
            }
            map[part.clone()].copy_from_slice(&self[part]);
        }
        map.make_read_only().map(Mapped)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_reads_as_its_bytes_and_is_page_aligned() {
        let path = std::env::temp_dir().join(format!("lone-mapped-{}", std::process::id()));
        std::fs::write(&path, [1, 2, 3]).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mapped[..], [1, 2, 3]);
        assert_eq!(mapped.as_ptr() as usize % 4096, 0);
        assert_eq!(Mapped::copy_of(&[1, 2, 3]).unwrap()[..], mapped[..]);
        assert_eq!(mapped.copied_to_huge_pages(&[]).unwrap()[..], mapped[..]);
        assert_eq!(mapped.copied_to_huge_pages(&[0..1, 2..3]).unwrap()[..], [0, 2, 0]);
    }

    #[test]
    fn a_directory_cannot_be_mapped() {
        assert_eq!(Mapped::open(&std::env::temp_dir()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
