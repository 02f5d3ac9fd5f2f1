//! Writes a `weight.bin` front to back, once, to anything that takes bytes.
//!
//! The header stands first and counts the blobs, so their number is declared at the start and checked at the
//! end; nothing is ever patched, and a writer that hashes what passes through it hashes the file.

use std::io::{BufWriter, Write};

use crate::{BlobError, DType};

use super::record::{encode_header, encode_record};
use super::{BlobLayout, BlobRef};

/// Small pieces are gathered to writes of this size; larger ones pass straight through.
const BUFFER_BYTES: usize = 1 << 16;

/// Streams blobs to `W` in file order.
#[derive(Debug)]
pub struct BlobWriter<W: Write> {
    out: BufWriter<W>,
    layout: BlobLayout,
    declared: u32,
    written: u64,
    open: Option<BlobRef>,
}

impl<W: Write> BlobWriter<W> {
    /// Begins a file of exactly `blobs` blobs.
    ///
    /// # Errors
    /// [`BlobError::Write`], as for everything here that writes: a full disk, for one.
    pub fn new(out: W, blobs: u32) -> Result<Self, BlobError> {
        let mut writer = BlobWriter {
            out: BufWriter::with_capacity(BUFFER_BYTES, out),
            layout: BlobLayout::default(),
            declared: blobs,
            written: 0,
            open: None,
        };
        writer.push(&encode_header(blobs))?;
        Ok(writer)
    }

    /// Begins the next blob, of `elements` packed values, whose bytes go into the sink.
    ///
    /// # Errors
    /// [`BlobError::WrongCount`] past the declared number, [`BlobError::Unfinished`] if the blob before was
    /// dropped half-written, and what [`BlobLayout::place`] refuses.
    pub fn begin(&mut self, dtype: DType, elements: usize) -> Result<BlobSink<'_, W>, BlobError> {
        self.no_open_blob()?;
        if self.layout.count() == self.declared {
            let given = self.declared.saturating_add(1);
            return Err(BlobError::WrongCount { declared: self.declared, given });
        }
        let blob = self.layout.place(dtype, elements)?;
        let gap = (blob.offset - self.written) as usize;
        self.push(&[0; 64][..gap])?;
        self.push(&encode_record(&blob))?;
        self.open = Some(blob);
        Ok(BlobSink { writer: self, blob, given: 0, last: 0 })
    }

    /// Writes a whole blob.
    ///
    /// # Errors
    /// As [`BlobWriter::begin`] and [`BlobSink::finish`].
    pub fn put(&mut self, dtype: DType, elements: usize, data: &[u8]) -> Result<BlobRef, BlobError> {
        let mut sink = self.begin(dtype, elements)?;
        sink.write(data)?;
        sink.finish()
    }

    /// Ends the file and gives back what it was written to.
    ///
    /// # Errors
    /// [`BlobError::WrongCount`] if fewer blobs than declared were written.
    pub fn finish(self) -> Result<W, BlobError> {
        self.no_open_blob()?;
        if self.layout.count() != self.declared {
            return Err(BlobError::WrongCount { declared: self.declared, given: self.layout.count() });
        }
        self.out.into_inner().map_err(|error| BlobError::Write(error.into_error()))
    }

    fn no_open_blob(&self) -> Result<(), BlobError> {
        self.open.map_or(Ok(()), |blob| Err(BlobError::Unfinished { offset: blob.offset }))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.out.write_all(bytes).map_err(BlobError::Write)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Takes the data of one blob, in pieces.
#[derive(Debug)]
pub struct BlobSink<'w, W: Write> {
    writer: &'w mut BlobWriter<W>,
    blob: BlobRef,
    given: u64,
    last: u8,
}

impl<W: Write> BlobSink<'_, W> {
    /// The blob being written.
    pub fn blob(&self) -> BlobRef {
        self.blob
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    /// [`BlobError::WrongSize`] for more bytes than the blob has.
    pub fn write(&mut self, data: &[u8]) -> Result<(), BlobError> {
        self.given += data.len() as u64;
        if self.given > self.blob.data_bytes() {
            return Err(self.wrong_size());
        }
        self.last = data.last().copied().unwrap_or(self.last);
        self.writer.push(data)
    }

    /// Ends the blob.
    ///
    /// # Errors
    /// [`BlobError::WrongSize`] for fewer or more bytes than the blob has, [`BlobError::DirtyPadding`] if unused
    /// bits of the last byte are set.
    pub fn finish(self) -> Result<BlobRef, BlobError> {
        if self.given != self.blob.data_bytes() {
            return Err(self.wrong_size());
        }
        let padding = self.blob.padding_bits();
        if u16::from(self.last) >> (8 - padding) != 0 {
            return Err(BlobError::DirtyPadding { offset: self.blob.offset, padding });
        }
        self.writer.open = None;
        Ok(self.blob)
    }

    fn wrong_size(&self) -> BlobError {
        BlobError::WrongSize { offset: self.blob.offset, declared: self.blob.data_bytes(), given: self.given }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_blob_may_come_in_pieces() {
        let mut whole = BlobWriter::new(Vec::new(), 1).unwrap();
        whole.put(DType::U8, 5, &[1, 2, 3, 4, 5]).unwrap();
        let mut pieces = BlobWriter::new(Vec::new(), 1).unwrap();
        let mut sink = pieces.begin(DType::U8, 5).unwrap();
        for piece in [&[1u8, 2][..], &[], &[3, 4, 5]] {
            sink.write(piece).unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(whole.finish().unwrap(), pieces.finish().unwrap());
    }

    #[test]
    fn the_declared_number_of_blobs_is_kept() {
        let writer = BlobWriter::new(Vec::new(), 2).unwrap();
        assert!(matches!(writer.finish(), Err(BlobError::WrongCount { declared: 2, given: 0 })));
        let mut writer = BlobWriter::new(Vec::new(), 0).unwrap();
        let error = writer.put(DType::U8, 1, &[1]).unwrap_err();
        assert!(matches!(error, BlobError::WrongCount { declared: 0, given: 1 }));
    }

    #[test]
    fn a_blob_with_too_few_or_too_many_bytes_is_refused_and_ends_the_file() {
        for data in [&[1u8][..], &[1, 2, 3]] {
            let mut writer = BlobWriter::new(Vec::new(), 2).unwrap();
            assert!(matches!(writer.put(DType::F16, 1, data), Err(BlobError::WrongSize { offset: 64, .. })));
            let next = writer.put(DType::F16, 1, &[1, 2]);
            assert!(matches!(next, Err(BlobError::Unfinished { offset: 64 })));
            assert!(matches!(writer.finish(), Err(BlobError::Unfinished { offset: 64 })));
        }
    }

    #[test]
    fn set_bits_in_the_padding_are_refused() {
        let mut writer = BlobWriter::new(Vec::new(), 1).unwrap();
        let error = writer.put(DType::U4, 1, &[0x1f]).unwrap_err();
        assert!(matches!(error, BlobError::DirtyPadding { offset: 64, padding: 4 }));
    }

    #[test]
    fn a_full_disk_is_an_error_with_its_cause() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = BlobWriter::new(Full, 1).unwrap();
        writer.put(DType::U8, 2, &[1, 2]).unwrap();
        let Err(BlobError::Write(cause)) = writer.finish() else { panic!("a full disk went unnoticed") };
        assert_eq!(cause.kind(), io::ErrorKind::StorageFull);
    }
}
