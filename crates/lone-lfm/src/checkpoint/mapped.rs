//! The one memory mapping of this crate: a file's bytes, read-only, paged in as they are touched.
#![expect(unsafe_code, reason = "mapping a file is unsafe: somebody else could change it underneath")]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;

use memmap2::Mmap;

use crate::regular_file;

/// Bytes of a file that is not copied into memory.
pub(super) struct MappedFile(Mmap);

impl MappedFile {
    pub(super) fn open(path: &Path) -> io::Result<MappedFile> {
        regular_file::check(path)?;
        let file = File::open(path)?;
        // SAFETY: the bytes stay plain bytes whatever they hold. Nobody may truncate or rewrite a checkpoint while it is
        // open; this process never does, and other programs are asked not to (docs/security.md).
        let map = unsafe { Mmap::map(&file) }?;
        Ok(MappedFile(map))
    }

    /// Asks the system to read `range` ahead of its use; where it cannot, nothing is lost but time.
    pub(super) fn prefetch(&self, range: Range<usize>) {
        #[cfg(unix)]
        let _ = self.0.advise_range(memmap2::Advice::WillNeed, range.start, range.len());
        #[cfg(not(unix))]
        let _ = range;
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
