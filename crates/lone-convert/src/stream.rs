//! Files of weights: hashed as they are written, block by block.

use std::fs::File;
use std::io::{self, Write};

use half::f16;

use crate::ConvertError;
use crate::weights::Rectangle;
use crate::workers::Report;

const _: () = assert!(cfg!(target_endian = "little"), "halves are written as they lie in memory");

/// Elements converted at a time: few enough to stay in a core's cache until they are written.
const CHUNK_ELEMENTS: usize = 1 << 17;

/// A file being written.
#[derive(Debug)]
pub(crate) struct HashedFile {
    file: File,
    hasher: blake3::Hasher,
}

impl HashedFile {
    pub(crate) fn new(file: File) -> Self {
        HashedFile { file, hasher: blake3::Hasher::new() }
    }

    /// The BLAKE3, in hex, of all that was written.
    pub(crate) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Converts `source` in blocks of rows, each handed to `write` as bytes and then reported.
pub(crate) fn convert(
    source: &Rectangle<'_>,
    report: &Report<'_>,
    mut write: impl FnMut(&[u8]) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let Rectangle { tensor, rows, columns, scale } = source;
    let step = (CHUNK_ELEMENTS / columns.len()).max(1);
    let mut halves = vec![f16::ZERO; step.min(rows.len()) * columns.len()];
    tensor.prefetch(rows.clone());
    for start in rows.clone().step_by(step) {
        let rows = start..rows.end.min(start + step);
        let halves = &mut halves[..rows.len() * columns.len()];
        tensor.read_columns_f16(rows, columns.clone(), *scale, halves);
        let bytes = bytemuck::cast_slice(halves);
        write(bytes)?;
        report.advance(bytes.len() as u64)?;
    }
    Ok(())
}
