//! Weights from checkpoint to disk: one thread converts blocks of rows, the caller's hashes and writes them.
//!
//! ```text
//! mapped tensors ─▶ blocks of fp16 ─▶ channel ─▶ hash + write
//!                        ▲──────── emptied ◀─────────┘
//! ```
//! Only the blocks in the circle are ever held in memory, whatever the size of the model.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use half::f16;

use crate::weights::Source;
use crate::{ConvertError, Progress};

const _: () = assert!(cfg!(target_endian = "little"), "halves are written as they lie in memory");

/// Elements of a block: enough for one write to pass through buffers, few enough to stay cached from thread to thread.
const BLOCK_ELEMENTS: usize = 1 << 20;
const BLOCKS: usize = 4;

/// Blocks of fp16 elements, source after source, as another thread makes them.
pub(crate) struct Blocks<'p> {
    full: Receiver<Vec<f16>>,
    empty: Sender<Vec<f16>>,
    progress: &'p mut dyn Progress,
}

/// Has `sources` converted while `write` takes them, in their order and each to its end.
pub(crate) fn convert<T>(
    sources: &[Source<'_>],
    progress: &mut dyn Progress,
    write: impl FnOnce(&mut Blocks<'_>) -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    std::thread::scope(|scope| {
        let (full_sender, full) = sync_channel(BLOCKS);
        let (empty, empty_receiver) = channel();
        for _ in 0..BLOCKS {
            empty.send(Vec::new()).expect("the receiver is alive");
        }
        scope.spawn(move || produce(sources, &empty_receiver, &full_sender));
        // Returning early drops the receiver, which ends the producer.
        write(&mut Blocks { full, empty, progress })
    })
}

impl Blocks<'_> {
    /// Hands the bytes of `source`, the next one, to `write`.
    pub(crate) fn each(
        &mut self,
        source: &Source<'_>,
        mut write: impl FnMut(&[u8]) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        for _ in 0..source.rows.len().div_ceil(block_rows(source)) {
            if self.progress.is_cancelled() {
                return Err(ConvertError::Cancelled);
            }
            let block = self.full.recv().expect("the producer goes through the same sources");
            let bytes: &[u8] = bytemuck::cast_slice(&block);
            write(bytes)?;
            self.progress.advance(bytes.len() as u64);
            // Fails once the producer is done with all sources, and needs no more blocks.
            let _ = self.empty.send(block);
        }
        Ok(())
    }
}

fn block_rows(source: &Source<'_>) -> usize {
    (BLOCK_ELEMENTS / source.columns.len()).max(1)
}

/// Ends early when nobody takes the blocks any more.
fn produce(sources: &[Source<'_>], empty: &Receiver<Vec<f16>>, full: &SyncSender<Vec<f16>>) {
    for source in sources {
        let block = block_rows(source);
        source.tensor.prefetch(source.rows.clone());
        for start in source.rows.clone().step_by(block) {
            let rows = start..source.rows.end.min(start + block);
            let Ok(mut halves) = empty.recv() else { return };
            halves.resize(rows.len() * source.columns.len(), f16::ZERO);
            source.tensor.read_columns_f16(rows, source.columns.clone(), source.scale, &mut halves);
            if full.send(halves).is_err() {
                return;
            }
        }
    }
}

/// A file whose content is hashed as it is written.
#[derive(Debug)]
pub(crate) struct HashedFile {
    file: File,
    hasher: blake3::Hasher,
}

impl HashedFile {
    pub(crate) fn new(file: File) -> Self {
        HashedFile { file, hasher: blake3::Hasher::new() }
    }

    /// BLAKE3 of all that was written, in hex.
    pub(crate) fn finish(self) -> String {
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
