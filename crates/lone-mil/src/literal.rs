//! Constants by value: making them from Rust values and reading them back.
//!
//! A [`Literal`] holds packed little-endian bytes, exactly as the file format does; the functions here are the
//! only place that turns those bytes into numbers.

use half::f16;

use crate::program::{Literal, Payload};
use crate::{DType, TensorType};

impl Literal {
    /// An int32 scalar.
    pub fn int(value: i32) -> Self {
        Literal::from_bytes(TensorType::scalar(DType::I32), &value.to_le_bytes())
    }

    /// An int32 vector.
    pub fn ints(values: &[i32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Literal::from_bytes(TensorType::new(DType::I32, [values.len()]), &bytes)
    }

    /// A bool scalar.
    pub fn bool(value: bool) -> Self {
        Literal::from_bytes(TensorType::scalar(DType::Bool), &[value.into()])
    }

    /// A bool vector.
    pub fn bools(values: &[bool]) -> Self {
        let bytes: Vec<u8> = values.iter().map(|&v| v.into()).collect();
        Literal::from_bytes(TensorType::new(DType::Bool, [values.len()]), &bytes)
    }

    /// A string scalar.
    pub fn string(value: &str) -> Self {
        Literal {
            ty: TensorType::scalar(DType::String),
            payload: Payload::Strings([value.to_owned()].into()),
        }
    }

    /// A float scalar of `dtype`, rounded to the nearest; `None` if `dtype` is neither fp16 nor fp32.
    pub fn float(dtype: DType, value: f32) -> Option<Self> {
        let ty = TensorType::scalar(dtype);
        match dtype {
            DType::F16 => Some(Literal::from_bytes(ty, &f16::from_f32(value).to_le_bytes())),
            DType::F32 => Some(Literal::from_bytes(ty, &value.to_le_bytes())),
            _ => None,
        }
    }

    /// A literal of `ty` whose packed elements are `bytes`.
    pub fn from_bytes(ty: TensorType, bytes: &[u8]) -> Self {
        Literal { ty, payload: Payload::Bytes(bytes.into()) }
    }

    /// The elements of an integer or bool literal held in place; `None` for other types and for blobs.
    pub fn to_ints(&self) -> Option<Vec<i64>> {
        match &self.payload {
            Payload::Bytes(bytes) => decode_ints(self.ty.dtype, bytes, self.ty.shape.checked_elements()?),
            Payload::Strings(_) | Payload::Blob(_) => None,
        }
    }

    /// The elements of an fp16 or fp32 literal held in place; `None` for other types and for blobs.
    pub fn to_floats(&self) -> Option<Vec<f32>> {
        match &self.payload {
            Payload::Bytes(bytes) => decode_floats(self.ty.dtype, bytes, self.ty.shape.checked_elements()?),
            Payload::Strings(_) | Payload::Blob(_) => None,
        }
    }

    /// The string of a string scalar.
    pub fn as_str(&self) -> Option<&str> {
        match &self.payload {
            Payload::Strings(strings) if strings.len() == 1 => Some(&strings[0]),
            _ => None,
        }
    }

    /// Whether a payload held in place has as many elements as the type says; blobs are checked by their file.
    pub fn is_consistent(&self) -> bool {
        match &self.payload {
            Payload::Bytes(bytes) => {
                self.ty.dtype != DType::String && self.ty.packed_bytes() == Some(bytes.len())
            }
            Payload::Strings(strings) => {
                self.ty.dtype == DType::String && self.ty.shape.checked_elements() == Some(strings.len())
            }
            Payload::Blob(_) => self.ty.dtype.blob_code().is_some() && self.ty.packed_bytes().is_some(),
        }
    }
}

/// `count` integers or bools out of packed bytes; `None` if `dtype` is not one of them or `bytes` is too short.
pub(crate) fn decode_ints(dtype: DType, bytes: &[u8], count: usize) -> Option<Vec<i64>> {
    if dtype.packed_bytes(count)? > bytes.len() {
        return None;
    }
    let bytes = &bytes[..dtype.packed_bytes(count)?];
    fn wide<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> i64) -> Vec<i64> {
        bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect()
    }
    Some(match dtype {
        DType::Bool => bytes.iter().map(|&b| i64::from(b != 0)).collect(),
        DType::I8 => bytes.iter().map(|&b| i64::from(b as i8)).collect(),
        DType::U8 => bytes.iter().map(|&b| i64::from(b)).collect(),
        DType::I16 => wide(bytes, |b| i16::from_le_bytes(b).into()),
        DType::U16 => wide(bytes, |b| u16::from_le_bytes(b).into()),
        DType::I32 => wide(bytes, |b| i32::from_le_bytes(b).into()),
        DType::U32 => wide(bytes, |b| u32::from_le_bytes(b).into()),
        DType::I64 => wide(bytes, i64::from_le_bytes),
        DType::I4 => unpack(bytes, 4, count).into_iter().map(|v| (i64::from(v) ^ 8) - 8).collect(),
        DType::U1 | DType::U2 | DType::U3 | DType::U4 | DType::U6 => {
            unpack(bytes, dtype.bits() as usize, count).into_iter().map(i64::from).collect()
        }
        DType::String | DType::F16 | DType::F32 | DType::F64 | DType::BF16 | DType::U64 => return None,
    })
}

/// `count` fp16 or fp32 values out of bytes; `None` if `dtype` is neither or `bytes` is too short.
pub(crate) fn decode_floats(dtype: DType, bytes: &[u8], count: usize) -> Option<Vec<f32>> {
    if dtype.packed_bytes(count)? > bytes.len() {
        return None;
    }
    match dtype {
        DType::F16 => {
            Some(bytes.as_chunks::<2>().0[..count].iter().map(|&b| f16::from_le_bytes(b).to_f32()).collect())
        }
        DType::F32 => {
            Some(bytes.as_chunks::<4>().0[..count].iter().map(|&b| f32::from_le_bytes(b)).collect())
        }
        _ => None,
    }
}

/// A bit stream, lowest bits of each byte first, as `count` values of `bits` bits, at most 8.
pub(crate) fn unpack(bytes: &[u8], bits: usize, count: usize) -> Vec<u8> {
    match bits {
        8 => bytes[..count].to_vec(),
        4 => bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(count).collect(),
        _ => {
            let mask = (1u16 << bits) - 1;
            let value = |i: usize| {
                let (byte, shift) = (i * bits / 8, i * bits % 8);
                let high = bytes.get(byte + 1).map_or(0, |&high| u16::from(high) << 8);
                ((high | u16::from(bytes[byte])) >> shift & mask) as u8
            };
            (0..count).map(value).collect()
        }
    }
}

/// Integers or bools as packed bytes; `None` for one out of the type's range, or another type.
pub(crate) fn encode_ints(dtype: DType, values: &[i64]) -> Option<Vec<u8>> {
    let bits = dtype.bits();
    let (low, high) = match dtype {
        DType::Bool => (0, 1),
        DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            (-1i64 << (bits - 1), !(-1i64 << (bits - 1)))
        }
        DType::U1 | DType::U2 | DType::U3 | DType::U4 | DType::U6 | DType::U8 | DType::U16 | DType::U32 => {
            (0, (1i64 << bits) - 1)
        }
        _ => return None,
    };
    let mut bytes = vec![0u8; dtype.packed_bytes(values.len())?];
    for (i, &value) in values.iter().enumerate() {
        if !(low..=high).contains(&value) {
            return None;
        }
        for bit in 0..bits as usize {
            let at = i * bits as usize + bit;
            bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    Some(bytes)
}

/// fp16 or fp32 values, rounded to the nearest, as bytes; `None` for another type.
pub(crate) fn encode_floats(dtype: DType, values: &[f32]) -> Option<Vec<u8>> {
    match dtype {
        DType::F16 => Some(values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()),
        DType::F32 => Some(values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        _ => None,
    }
}

/// Two hexadecimal digits a byte.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits, two a byte.
pub(crate) fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let digit = |c: u8| char::from(c).to_digit(16).map(|digit| digit as u8);
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_streams_unpack_as_the_storage_format_packs_them() {
        let cases: [(DType, &[i64], &[u8]); 6] = [
            (DType::I4, &[-8, 7, -1, 1, 3], &[0x78, 0x1f, 0x03]),
            (DType::U1, &[1, 0, 1, 1, 0, 0, 0, 0, 1], &[0x0d, 0x01]),
            (DType::U2, &[1, 2, 3, 0, 1], &[0x39, 0x01]),
            (DType::U3, &[1, 2, 3, 4, 5], &[0xd1, 0x58]),
            (DType::U4, &[1, 2, 3, 4, 15], &[0x21, 0x43, 0x0f]),
            (DType::U6, &[1, 2, 3, 4, 63], &[0x81, 0x30, 0x10, 0x3f]),
        ];
        for (dtype, values, bytes) in cases {
            assert_eq!(decode_ints(dtype, bytes, values.len()).as_deref(), Some(values), "{dtype}");
            assert_eq!(decode_ints(dtype, &bytes[..bytes.len() - 1], values.len()), None, "{dtype}");
            assert_eq!(encode_ints(dtype, values).as_deref(), Some(bytes), "{dtype}");
            assert_eq!(encode_ints(dtype, &[64]), None, "{dtype} does not reach 64");
        }
    }

    #[test]
    fn literals_give_back_what_they_were_made_of() {
        assert_eq!(Literal::ints(&[-1, 70_000]).to_ints(), Some(vec![-1, 70_000]));
        assert_eq!(Literal::bools(&[true, false]).to_ints(), Some(vec![1, 0]));
        assert_eq!(Literal::string("valid").as_str(), Some("valid"));
        assert_eq!(Literal::float(DType::F16, 0.1).and_then(|l| l.to_floats()), Some(vec![0.099_975_586]));
        assert_eq!(Literal::float(DType::I32, 0.1), None);
    }

    #[test]
    fn a_payload_of_the_wrong_length_is_inconsistent() {
        assert!(Literal::ints(&[1, 2]).is_consistent());
        assert!(!Literal::from_bytes(TensorType::f16([3]), &[0; 4]).is_consistent());
        assert!(!Literal::from_bytes(TensorType::scalar(DType::String), &[]).is_consistent());
    }
}
