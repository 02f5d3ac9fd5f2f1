//! Files of weights, made on one thread and written on another.
//!
//! ```text
//! mapped tensors ─▶ fp16 ─▶ blobs ─▶ hash ─▶ blocks ══▶ file
//!                                              ▲───── emptied
//! ```
//! The system copies what is written, page by page, for about as long as making it takes. Only the blocks in the
//! circle are ever held in memory, whatever the size of the model.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use half::f16;

use crate::weights::Rectangle;
use crate::{ConvertError, Progress};

const _: () = assert!(cfg!(target_endian = "little"), "halves are written as they lie in memory");

/// Elements converted at a time: few enough to stay in a core's cache.
const CHUNK_ELEMENTS: usize = 1 << 17;
const BLOCK_BYTES: usize = 2 << 20;
const BLOCKS: usize = 4;

/// How long a wish to stop may go unheard while nothing is ready to be written.
const PATIENCE: Duration = Duration::from_millis(100);

/// Writes to `file` what `make` writes to the outlet it is given; returns the BLAKE3 of it, in hex. `path` is what
/// errors call the file.
///
/// # Errors
/// What `make` fails with, [`ConvertError::Io`], [`ConvertError::Cancelled`].
pub(crate) fn write_file(
    mut file: File,
    path: &Path,
    progress: &mut dyn Progress,
    make: impl FnOnce(&mut Outlet<'_>) -> Result<(), ConvertError> + Send,
) -> Result<String, ConvertError> {
    let abandoned = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (full_sender, full) = sync_channel(BLOCKS);
        let (empty_sender, empty) = channel();
        for _ in 0..BLOCKS {
            empty_sender.send(Vec::with_capacity(BLOCK_BYTES)).expect("the receiver is alive");
        }
        let abandoned = &abandoned;
        let maker = scope.spawn(move || {
            let (block, hasher) = (Vec::new(), blake3::Hasher::new());
            let mut outlet = Outlet { block, full: full_sender, empty, abandoned, hasher };
            make(&mut outlet)?;
            outlet.finish().map_err(ConvertError::io("write", path))
        });
        // Failing here hangs up on the maker, whose own failure is then only the echo of this one.
        write_blocks(&mut file, full, &empty_sender, progress, path)
            .inspect_err(|_| abandoned.store(true, Ordering::Relaxed))?;
        maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn write_blocks(
    file: &mut File,
    full: Receiver<Vec<u8>>,
    empty: &Sender<Vec<u8>>,
    progress: &mut dyn Progress,
    path: &Path,
) -> Result<(), ConvertError> {
    loop {
        let next = full.recv_timeout(PATIENCE);
        if progress.is_cancelled() {
            return Err(ConvertError::Cancelled);
        }
        let block = match next {
            Ok(block) => block,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        file.write_all(&block).map_err(ConvertError::io("write", path))?;
        progress.advance(block.len() as u64);
        // Fails once the maker is done and needs no more blocks.
        let _ = empty.send(block);
    }
}

/// Where the maker of a file puts its bytes.
pub(crate) struct Outlet<'a> {
    block: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    abandoned: &'a AtomicBool,
    hasher: blake3::Hasher,
}

impl<'a> Outlet<'a> {
    /// Becomes true when what is made is not wanted any more.
    pub(crate) fn abandoned(&self) -> &'a AtomicBool {
        self.abandoned
    }

    fn finish(mut self) -> io::Result<String> {
        self.flush()?;
        Ok(self.hasher.finalize().to_hex().to_string())
    }
}

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.capacity() == 0 {
            self.block = self.empty.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.block.clear();
        }
        let taken = bytes.len().min(BLOCK_BYTES - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        self.hasher.update(&bytes[..taken]);
        if self.block.len() == BLOCK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Hands over what there is.
    fn flush(&mut self) -> io::Result<()> {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return Ok(());
        }
        self.full.send(block).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Converts `source` in blocks of rows, each handed to `write` as bytes.
pub(crate) fn convert(
    source: &Rectangle<'_>,
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
        write(bytemuck::cast_slice(halves))?;
    }
    Ok(())
}
