//! The two fixed-size structures of the file, as bytes: the header and the metadata record.

use std::path::Path;

use crate::{BlobError, DType};

use super::BlobRef;

pub(super) const HEADER_BYTES: u64 = 64;
pub(super) const RECORD_BYTES: u64 = 64;
pub(super) const ALIGNMENT: u64 = 64;
const VERSION: u32 = 2;
const SENTINEL: u32 = 0xDEAD_BEEF;

pub(super) fn encode_header(count: u32) -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[..4].copy_from_slice(&count.to_le_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

pub(super) fn encode_record(blob: &BlobRef) -> [u8; RECORD_BYTES as usize] {
    let code = blob.dtype.blob_code().expect("the layout places storable types only");
    let mut bytes = [0; RECORD_BYTES as usize];
    bytes[..4].copy_from_slice(&SENTINEL.to_le_bytes());
    bytes[4..8].copy_from_slice(&code.to_le_bytes());
    bytes[8..16].copy_from_slice(&blob.data_bytes().to_le_bytes());
    bytes[16..24].copy_from_slice(&blob.data_offset().to_le_bytes());
    bytes[24..32].copy_from_slice(&u64::from(blob.padding_bits()).to_le_bytes());
    bytes
}

/// Reads the header of a file of `file` bytes and gives the number of blobs it counts.
pub(super) fn decode_header(path: &Path, file: &[u8]) -> Result<u32, BlobError> {
    let wrong = |what, expected: &str, found: String| BlobError::Header {
        path: path.into(),
        what,
        expected: expected.into(),
        found,
    };
    let Some(header) = file.get(..HEADER_BYTES as usize) else {
        return Err(wrong("file size", "at least 64 bytes", format!("{} bytes", file.len())));
    };
    if u32_at(header, 4) != VERSION {
        return Err(wrong("header version", "2", u32_at(header, 4).to_string()));
    }
    if header[8..].iter().any(|&byte| byte != 0) {
        return Err(wrong("reserved header bytes", "zeros", "other bytes".into()));
    }
    Ok(u32_at(header, 0))
}

/// Where a record is, for errors about it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) index: u32,
    pub(super) offset: u64,
}

impl Place<'_> {
    fn wrong(&self, what: &'static str, expected: impl ToString, found: impl ToString) -> BlobError {
        BlobError::Record {
            path: self.path.into(),
            index: self.index,
            offset: self.offset,
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// Reads and checks the record at `place`; its data lie within `file` when this succeeds.
pub(super) fn decode_record(place: Place<'_>, file: &[u8]) -> Result<BlobRef, BlobError> {
    let file_bytes = file.len() as u64;
    let data_offset = place.offset.saturating_add(RECORD_BYTES);
    if data_offset > file_bytes {
        return Err(place.wrong("record", "64 bytes", format!("the end of the file, {file_bytes}")));
    }
    let record = &file[place.offset as usize..data_offset as usize];
    if u32_at(record, 0) != SENTINEL {
        let found = format!("{:#010x}", u32_at(record, 0));
        return Err(place.wrong("sentinel", format!("{SENTINEL:#010x}"), found));
    }
    let code = u32_at(record, 4);
    let dtype = DType::from_blob_code(code)
        .ok_or_else(|| place.wrong("dtype code", "that of a type known here", code))?;
    if u64_at(record, 16) != data_offset {
        return Err(place.wrong("data offset", data_offset, u64_at(record, 16)));
    }
    let bytes = u64_at(record, 8);
    if bytes > file_bytes - data_offset {
        let room = format!("at most {} bytes", file_bytes - data_offset);
        return Err(place.wrong("data size", room, bytes));
    }
    if record[32..].iter().any(|&byte| byte != 0) {
        return Err(place.wrong("reserved bytes", "zeros", "other bytes"));
    }
    let elements = count_elements(place, dtype, bytes, u64_at(record, 24))?;
    Ok(BlobRef { offset: place.offset, dtype, elements })
}

/// The number of values in `bytes` bytes of data whose last byte has `padding` unused bits.
fn count_elements(place: Place<'_>, dtype: DType, bytes: u64, padding: u64) -> Result<usize, BlobError> {
    let width = u64::from(dtype.bits());
    let limit = if width < 8 && bytes > 0 { 8 } else { 1 };
    if padding >= limit {
        return Err(place.wrong("padding bits", format!("fewer than {limit} for {dtype}"), padding));
    }
    let bits = bytes * 8 - padding;
    if !bits.is_multiple_of(width) {
        return Err(place.wrong("bits of data", format!("a multiple of {width} for {dtype}"), bits));
    }
    Ok((bits / width) as usize)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
