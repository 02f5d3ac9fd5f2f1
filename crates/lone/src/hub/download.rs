//! One file: into `ETAG.incomplete`, from where it was left, checked, renamed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::client::{Answer, Client};
use super::listing::RemoteFile;
use super::{HubError, cache};
use crate::ui::Progress;

/// Length of a SHA-256 in hex; the ETag of small files is git's hash, which is shorter and of more than the content.
const SHA256_DIGITS: usize = 64;

const BLOCK_BYTES: usize = 256 << 10;

/// Fetches `file` to `blob`, continuing what an earlier attempt left.
///
/// # Errors
/// [`HubError`] after several attempts without any progress, or for content that is not what the hub announced.
pub(super) fn fetch(
    client: &Client,
    file: &RemoteFile,
    blob: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), HubError> {
    cache::create_parent(blob)?;
    let mut partial = Partial::open(blob.with_added_extension("incomplete"), file)?;
    progress.resume_at(partial.bytes);
    let mut failures = 0;
    while partial.bytes < file.bytes {
        let before = partial.bytes;
        if let Err(error) = partial.receive(client, file, progress) {
            if !error.is_transient() {
                return Err(error);
            }
            // Whoever gets further each time may try as often as it takes.
            failures = if partial.bytes > before { 1 } else { failures + 1 };
            client.pause_after(failures, error, &file.name)?;
        }
    }
    partial.finish(file, blob)
}

/// What has arrived of a file.
struct Partial {
    path: PathBuf,
    file: File,
    bytes: u64,
    hasher: Sha256,
}

impl Partial {
    fn open(path: PathBuf, expected: &RemoteFile) -> Result<Self, HubError> {
        let io = |source| HubError::Io { path: path.clone(), source };
        let file = File::options().read(true).create(true).append(true).open(&path).map_err(io)?;
        let mut partial = Partial { path, file, bytes: 0, hasher: Sha256::new() };
        partial.attempt(Partial::take_stock)?;
        if partial.bytes > expected.bytes {
            partial.restart()?;
        }
        Ok(partial)
    }

    /// Counts and hashes what is there.
    fn take_stock(&mut self) -> io::Result<()> {
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match self.file.read(&mut block)? {
                0 => return Ok(()),
                read => {
                    self.hasher.update(&block[..read]);
                    self.bytes += read as u64;
                }
            }
        }
    }

    fn restart(&mut self) -> Result<(), HubError> {
        self.attempt(|partial| {
            partial.file.set_len(0)?;
            partial.file.rewind()
        })?;
        (self.bytes, self.hasher) = (0, Sha256::new());
        Ok(())
    }

    /// Asks for the rest and appends it as it comes.
    fn receive(
        &mut self,
        client: &Client,
        expected: &RemoteFile,
        progress: &mut Progress<'_>,
    ) -> Result<(), HubError> {
        let mut answer = client.get_from(&expected.url, self.bytes)?;
        if self.bytes > 0 && !continues_at(&answer, self.bytes) {
            // The server knows no ranges: from the start, then.
            progress.set_back(self.bytes);
            self.restart()?;
            if answer.response.status() == 416 {
                answer = client.get_from(&expected.url, 0)?;
            }
        }
        let mut body = answer.response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut block = vec![0; BLOCK_BYTES];
        while self.bytes < expected.bytes {
            if client.interrupt.is_raised() {
                return Err(HubError::Interrupted { file: expected.name.clone() });
            }
            let read = body
                .read(&mut block)
                .map_err(|error| HubError::Network { url: expected.url.clone(), source: error.into() })?;
            if read == 0 {
                let url = expected.url.clone();
                return Err(HubError::Truncated { url, expected: expected.bytes, found: self.bytes });
            }
            self.append(&block[..read])?;
            progress.advance(read as u64);
        }
        Ok(())
    }

    fn append(&mut self, block: &[u8]) -> Result<(), HubError> {
        self.attempt(|partial| partial.file.write_all(block))?;
        self.hasher.update(block);
        self.bytes += block.len() as u64;
        Ok(())
    }

    /// Checks size and hash, and gives the file its name.
    fn finish(mut self, expected: &RemoteFile, blob: &Path) -> Result<(), HubError> {
        let found: String = self.hasher.finalize_reset().iter().map(|byte| format!("{byte:02x}")).collect();
        let file = expected.name.clone();
        let fault = if self.bytes != expected.bytes {
            Some(HubError::Size { file, expected: expected.bytes, found: self.bytes })
        } else if expected.etag.len() == SHA256_DIGITS && found != expected.etag {
            Some(HubError::Hash { file, expected: expected.etag.clone(), found })
        } else {
            None
        };
        if let Some(fault) = fault {
            self.attempt(|partial| fs::remove_file(&partial.path))?;
            return Err(fault);
        }
        self.attempt(|partial| fs::rename(&partial.path, blob))
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> io::Result<T>) -> Result<T, HubError> {
        work(self).map_err(|source| HubError::Io { path: self.path.clone(), source })
    }
}

/// Whether the answer is the part of the file that starts at byte `from`.
fn continues_at(answer: &Answer, from: u64) -> bool {
    let start = || {
        let range = answer.header("content-range")?.strip_prefix("bytes ")?;
        range.split('-').next()?.trim().parse::<u64>().ok()
    };
    answer.response.status() == 206 && start() == Some(from)
}
