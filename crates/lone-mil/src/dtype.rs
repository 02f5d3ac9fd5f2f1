//! Element types: their widths, their names in MIL text, and their codes in the protobuf and in `weight.bin`.
//!
//! The two encodings are different numberings of the same types; this table is the only place that knows both.

use std::fmt;

/// An element type of MIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum DType {
    Bool,
    String,
    F16,
    F32,
    F64,
    BF16,
    I4,
    I8,
    I16,
    I32,
    I64,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
    U16,
    U32,
    U64,
}

/// One row per type: MIL name, bits an element, protobuf `DataType`, blob file code (0: never in a blob).
const TABLE: [(DType, &str, u32, i32, u32); 20] = [
    (DType::Bool, "bool", 8, 1, 0),
    (DType::String, "string", 0, 2, 0),
    (DType::F16, "fp16", 16, 10, 1),
    (DType::F32, "fp32", 32, 11, 2),
    (DType::F64, "fp64", 64, 12, 0),
    (DType::BF16, "bf16", 16, 13, 5),
    (DType::I4, "int4", 4, 25, 8),
    (DType::I8, "int8", 8, 21, 4),
    (DType::I16, "int16", 16, 22, 6),
    (DType::I32, "int32", 32, 23, 14),
    (DType::I64, "int64", 64, 24, 0),
    (DType::U1, "uint1", 1, 37, 9),
    (DType::U2, "uint2", 2, 36, 10),
    (DType::U3, "uint3", 3, 39, 12),
    (DType::U4, "uint4", 4, 35, 11),
    (DType::U6, "uint6", 6, 38, 13),
    (DType::U8, "uint8", 8, 31, 3),
    (DType::U16, "uint16", 16, 32, 7),
    (DType::U32, "uint32", 32, 33, 15),
    (DType::U64, "uint64", 64, 34, 0),
];

impl DType {
    fn row(self) -> &'static (DType, &'static str, u32, i32, u32) {
        TABLE.iter().find(|row| row.0 == self).expect("every type has its row")
    }

    /// Bits of one element as stored; 0 for strings.
    pub fn bits(self) -> u32 {
        self.row().2
    }

    /// The name in MIL text and in `cast`, such as `fp16`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The type of that MIL name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The protobuf's `DataType` number.
    pub fn proto_code(self) -> i32 {
        self.row().3
    }

    /// The type of that protobuf `DataType` number.
    pub fn from_proto_code(code: i32) -> Option<Self> {
        TABLE.iter().find(|row| row.3 == code).map(|row| row.0)
    }

    /// The code in a blob's metadata record; `None` for types that never stand in a blob.
    pub fn blob_code(self) -> Option<u32> {
        Some(self.row().4).filter(|&code| code != 0)
    }

    /// The type of that blob record code.
    pub fn from_blob_code(code: u32) -> Option<Self> {
        TABLE.iter().find(|row| row.4 == code && code != 0).map(|row| row.0)
    }

    /// Bytes of `elements` packed values: bit streams round up to whole bytes. `None` if that overflows.
    pub fn packed_bytes(self, elements: usize) -> Option<usize> {
        elements.checked_mul(self.bits() as usize).map(|bits| bits.div_ceil(8))
    }

    /// fp16, fp32, fp64 or bf16.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64 | DType::BF16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_name_leads_back_to_its_type() {
        for (dtype, name, _, proto, blob) in TABLE {
            assert_eq!(DType::from_name(name), Some(dtype));
            assert_eq!(DType::from_proto_code(proto), Some(dtype));
            if blob != 0 {
                assert_eq!(DType::from_blob_code(blob), Some(dtype));
            }
        }
    }

    #[test]
    fn a_bit_stream_rounds_up_to_whole_bytes() {
        assert_eq!(DType::U6.packed_bytes(5), Some(4));
        assert_eq!(DType::U3.packed_bytes(5), Some(2));
        assert_eq!(DType::F16.packed_bytes(usize::MAX), None);
    }
}
