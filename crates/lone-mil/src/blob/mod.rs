//! `weight.bin`, MIL blob storage version 2: written as a stream, read in place.
//!
//! ```text
//! 0    header   count u32 · version 2 u32 · 56 zero bytes
//! 64   record   0xDEADBEEF u32 · dtype u32 · data bytes u64 · data offset u64 · padding bits u64 · 32 zero bytes
//! 128  data     row-major, little-endian; sub-byte types as a bit stream, lowest bits first
//!      zeros to the next multiple of 64, then the next record; nothing after the last data byte
//! ```
//! A blob is named by the offset of its *record*. Offsets depend only on types and counts, so a [`BlobLayout`]
//! knows them before a byte is written. Readers in the field check little of this; [`BlobFile`] checks all of it.

mod error;
mod file;
mod layout;
mod record;
mod writer;

pub use error::BlobError;
pub use file::BlobFile;
pub use layout::{BlobLayout, BlobRef};
pub use writer::{BlobSink, BlobWriter};
