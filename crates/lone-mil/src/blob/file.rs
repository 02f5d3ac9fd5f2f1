//! A `weight.bin` mapped into memory: checked once from header to end, then read in place.
//!
//! Opening touches the records only, so a file of any size opens in the time of its number of blobs.

use std::path::{Path, PathBuf};

use half::f16;

use crate::{BlobError, DType, Literal, Mapped, Payload, TensorType};

use super::BlobRef;
use super::record::{ALIGNMENT, HEADER_BYTES, Place, decode_header, decode_record};

/// An open, checked `weight.bin`.
#[derive(Debug)]
pub struct BlobFile {
    path: PathBuf,
    map: Mapped,
    blobs: Vec<BlobRef>,
}

impl BlobFile {
    /// Maps the file at `path` and checks its structure: header, every record, and that nothing is left over.
    ///
    /// # Errors
    /// [`BlobError::Read`] if it cannot be mapped; [`BlobError::Header`] or [`BlobError::Record`] naming the first
    /// thing that is wrong.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, BlobError> {
        let path = path.into();
        let map = Mapped::open(&path).map_err(|source| BlobError::Read { path: path.clone(), source })?;
        Self::check(path, map)
    }

    /// The same over a copy of `bytes`; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`BlobFile::open`].
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: &[u8]) -> Result<Self, BlobError> {
        let path = path.into();
        let map = Mapped::copy_of(bytes).map_err(|source| BlobError::Read { path: path.clone(), source })?;
        Self::check(path, map)
    }

    /// A file without blobs, for a program without weights.
    pub fn empty(path: impl Into<PathBuf>) -> Self {
        let map = Mapped::copy_of(&[]).expect("one anonymous page can be had");
        BlobFile { path: path.into(), map, blobs: Vec::new() }
    }

    /// The same in memory of its own, of huge pages, without the data of the blobs whose records are at `unread`.
    ///
    /// # Errors
    /// [`BlobError::Read`] if there is no such memory.
    pub fn copied_to_huge_pages(self, unread: &[u64]) -> Result<Self, BlobError> {
        let unread = self.blobs.iter().filter(|blob| unread.contains(&blob.offset));
        let range = |blob: &BlobRef| {
            let start = blob.data_offset() as usize;
            start..start + blob.data_bytes() as usize
        };
        let without: Vec<_> = unread.map(range).collect();
        match self.map.copied_to_huge_pages(&without) {
            Ok(map) => Ok(BlobFile { map, ..self }),
            Err(source) => Err(BlobError::Read { path: self.path, source }),
        }
    }

    fn check(path: PathBuf, map: Mapped) -> Result<Self, BlobError> {
        let blobs = walk(&path, &map)?;
        Ok(BlobFile { path, map, blobs })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All blobs, in file order.
    pub fn blobs(&self) -> &[BlobRef] {
        &self.blobs
    }

    /// The number and description of the blob whose record is at `offset`.
    ///
    /// # Errors
    /// [`BlobError::NoRecord`] if none begins there.
    pub fn blob(&self, offset: u64) -> Result<(usize, BlobRef), BlobError> {
        let found = self.blobs.binary_search_by_key(&offset, |blob| blob.offset);
        let index = found.map_err(|_| BlobError::NoRecord { path: self.path.clone(), offset })?;
        Ok((index, self.blobs[index]))
    }

    /// The data of the blob at `offset`: packed, row-major, 64-byte aligned.
    ///
    /// # Errors
    /// [`BlobError::NoRecord`], and [`BlobError::WrongType`] unless it holds just what a tensor of type `ty` needs.
    pub fn data(&self, offset: u64, ty: &TensorType) -> Result<&[u8], BlobError> {
        let (index, blob) = self.blob(offset)?;
        if blob.dtype != ty.dtype || ty.shape.checked_elements() != Some(blob.elements) {
            return Err(BlobError::WrongType {
                path: self.path.clone(),
                index: index as u32,
                offset,
                expected: ty.clone(),
                dtype: blob.dtype,
                elements: blob.elements,
            });
        }
        let start = blob.data_offset() as usize;
        Ok(&self.map[start..start + blob.data_bytes() as usize])
    }

    /// The packed elements of a literal, in place, whether they lie in this file or in the program.
    ///
    /// # Errors
    /// As [`BlobFile::data`]; [`BlobError::Literal`] for strings, or bytes that do not fit the literal's type.
    pub fn bytes<'a>(&'a self, literal: &'a Literal) -> Result<&'a [u8], BlobError> {
        let ty = &literal.ty;
        let unfit = |found: String| BlobError::Literal { ty: ty.clone(), found };
        match &literal.payload {
            Payload::Blob(offset) => self.data(*offset, ty),
            Payload::Bytes(bytes) if ty.packed_bytes() == Some(bytes.len()) => Ok(bytes),
            Payload::Bytes(bytes) => Err(unfit(format!("{} bytes", bytes.len()))),
            Payload::Strings(_) => Err(unfit("strings".into())),
        }
    }

    /// The halves of an fp16 blob, in place.
    ///
    /// # Errors
    /// As [`BlobFile::data`].
    ///
    /// # Panics
    /// If `ty` is not an fp16 type.
    pub fn f16s(&self, offset: u64, ty: &TensorType) -> Result<&[f16], BlobError> {
        assert_eq!(ty.dtype, DType::F16, "halves of a tensor of halves");
        Ok(bytemuck::cast_slice(self.data(offset, ty)?))
    }
}

/// Walks from the header to the end of `file`, checking everything the format promises.
fn walk(path: &Path, file: &[u8]) -> Result<Vec<BlobRef>, BlobError> {
    let count = decode_header(path, file)?;
    let mut blobs = Vec::new();
    let mut end = HEADER_BYTES;
    for index in 0..count {
        let offset = end.next_multiple_of(ALIGNMENT);
        let blob = decode_record(Place { path, index, offset }, file)?;
        end = blob.data_offset() + blob.data_bytes();
        blobs.push(blob);
    }
    if end != file.len() as u64 {
        return Err(BlobError::Header {
            path: path.into(),
            what: "file size",
            expected: format!("{end} bytes for the {count} blobs the header counts"),
            found: format!("{} bytes", file.len()),
        });
    }
    Ok(blobs)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::super::record::{encode_header, encode_record};
    use super::*;
    use crate::{BlobLayout, BlobWriter};

    /// Types, elements and data bytes of section 4.3 of the format's description.
    const PACKED: [(DType, usize, &[u8]); 9] = [
        (DType::F16, 3, &[0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38]),
        (DType::F32, 1, &[0x00, 0x00, 0x80, 0x3f]),
        (DType::I4, 5, &[0x78, 0x1f, 0x03]),
        (DType::U1, 9, &[0x0d, 0x01]),
        (DType::U2, 5, &[0x39, 0x01]),
        (DType::U3, 5, &[0xd1, 0x58]),
        (DType::U4, 5, &[0x21, 0x43, 0x0f]),
        (DType::U6, 5, &[0x81, 0x30, 0x10, 0x3f]),
        (DType::U6, 11, &[0x95, 0xfa, 0x07, 0x60, 0xe4, 0x03, 0x00, 0x10, 0x00]),
    ];

    fn sample() -> (Vec<u8>, Vec<BlobRef>) {
        let mut writer = BlobWriter::new(Vec::new(), PACKED.len() as u32).unwrap();
        let refs = PACKED.map(|(dtype, elements, data)| writer.put(dtype, elements, data).unwrap());
        (writer.finish().unwrap(), refs.to_vec())
    }

    fn refusal(bytes: &[u8]) -> String {
        BlobFile::from_bytes("weight.bin", bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_back_in_place() {
        let (bytes, refs) = sample();
        let file = BlobFile::from_bytes("weight.bin", &bytes).unwrap();
        assert_eq!(file.blobs(), refs);
        for (blob, (dtype, elements, data)) in refs.iter().zip(PACKED) {
            assert_eq!(file.data(blob.offset, &TensorType::new(dtype, [elements])).unwrap(), data);
        }
        let halves = |file: &BlobFile| file.f16s(64, &TensorType::f16([1, 3])).unwrap().to_vec();
        assert_eq!(halves(&file), [1.0, -2.0, 0.5].map(f16::from_f32));
        let copy = file.copied_to_huge_pages(&[refs[1].offset]).unwrap();
        assert_eq!(halves(&copy), [1.0, -2.0, 0.5].map(f16::from_f32));
        let (dtype, elements, data) = PACKED[1];
        let zeros = vec![0; data.len()];
        assert_eq!(copy.data(refs[1].offset, &TensorType::new(dtype, [elements])).unwrap(), zeros);
    }

    #[test]
    fn the_bytes_are_those_of_the_published_dump() {
        let (bytes, _) = sample();
        assert_eq!(bytes[..8], [9, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[64..80], [0xef, 0xbe, 0xad, 0xde, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[80..96], [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[192..208], [0xef, 0xbe, 0xad, 0xde, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn every_damage_of_the_structure_is_refused_by_name() {
        let (good, _) = sample();
        // Where, what is put there, and what the refusal must say. Record 5, uint3, is at 704.
        let damages: [(usize, &[u8], &str); 14] = [
            (4, &[1], "weight.bin: header version: expected 2, found 1"),
            (9, &[1], "reserved header bytes"),
            (0, &[8], "for the 8 blobs the header counts, found"),
            (0, &[10], "record 9 at offset 1216: record: expected 64 bytes"),
            (64, &[0], "record 0 at offset 64: sentinel: expected 0xdeadbeef, found 0xdeadbe00"),
            (192, &[0], "record 1 at offset 192: sentinel"),
            (68, &[200], "record 0 at offset 64: dtype code: expected that of a type known here, found 200"),
            (80, &[0xc0], "record 0 at offset 64: data offset: expected 128, found 192"),
            (72, &[0xff, 0xff], "record 0 at offset 64: data size: expected at most"),
            (72, &[5], "record 0 at offset 64: bits of data: expected a multiple of 16 for fp16, found 40"),
            (88, &[1], "record 0 at offset 64: padding bits: expected fewer than 1 for fp16, found 1"),
            (
                704 + 24,
                &[8],
                "record 5 at offset 704: padding bits: expected fewer than 8 for uint3, found 8",
            ),
            (704 + 24, &[2], "record 5 at offset 704: bits of data: expected a multiple of 3 for uint3"),
            (64 + 40, &[1], "record 0 at offset 64: reserved bytes"),
        ];
        for (at, patch, expected) in damages {
            let mut bytes = good.clone();
            bytes[at..at + patch.len()].copy_from_slice(patch);
            let message = refusal(&bytes);
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
        assert!(refusal(&good[..good.len() - 1]).contains("record 8 at offset 1088: data size"));
        assert!(refusal(&[&good[..], &[0]].concat()).contains("file size"));
        assert!(refusal(&good[..63]).contains("expected at least 64 bytes, found 63 bytes"));
    }

    #[test]
    fn a_blob_of_another_type_count_or_place_is_refused() {
        let (bytes, refs) = sample();
        let file = BlobFile::from_bytes("weight.bin", &bytes).unwrap();
        let u3 = refs[5].offset;
        for ty in [TensorType::new(DType::U3, [4]), TensorType::new(DType::U4, [5])] {
            let message = file.data(u3, &ty).unwrap_err().to_string();
            let expected = format!("record 5 at offset {u3}: expected {ty}, found 5 uint3 values");
            assert!(message.contains(&expected), "{message}");
        }
        let message = file.data(128, &TensorType::f16([3])).unwrap_err().to_string();
        assert_eq!(message, "weight.bin: no blob record begins at offset 128");
    }

    #[test]
    fn a_literal_is_found_in_the_file_or_in_the_program() {
        let (bytes, _) = sample();
        let file = BlobFile::from_bytes("weight.bin", &bytes).unwrap();
        let literal = |payload| Literal { ty: TensorType::f16([3]), payload };
        assert_eq!(file.bytes(&literal(Payload::Blob(64))).unwrap(), PACKED[0].2);
        assert_eq!(file.bytes(&literal(Payload::Bytes([0; 6].into()))).unwrap(), [0; 6]);
        let message = file.bytes(&literal(Payload::Bytes([0; 5].into()))).unwrap_err().to_string();
        assert_eq!(message, "a literal of type fp16(3) holds 5 bytes, not fp16(3) values");
    }

    #[test]
    fn a_file_of_gigabytes_opens_by_its_records_alone() {
        let mut layout = BlobLayout::default();
        let blobs = [5 << 30, 3].map(|elements| layout.place(DType::U8, elements).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weight.bin");
        let sparse = File::create(&path).unwrap();
        sparse.write_all_at(&encode_header(2), 0).unwrap();
        for blob in &blobs {
            sparse.write_all_at(&encode_record(blob), blob.offset).unwrap();
        }
        sparse.write_all_at(&[1, 2, 3], blobs[1].data_offset()).unwrap();
        let file = BlobFile::open(path).unwrap();
        assert_eq!(file.blobs(), blobs);
        assert_eq!(file.data(blobs[1].offset, &TensorType::new(DType::U8, [3])).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_directory_is_not_a_weight_file() {
        let error = BlobFile::open(std::env::temp_dir()).unwrap_err();
        assert!(matches!(error, BlobError::Read { .. }));
    }
}
