//! Constants, to and from their messages.
//!
//! Which member of a `TensorValue` holds the elements depends on their type; a literal in another member is
//! refused, although some readers take it.

use crate::proto::mil;
use crate::proto::mil::{Elements, ImmediateKind, ValueKind};
use crate::{DType, Literal, Payload, TensorType};

use super::WEIGHTS_REFERENCE;
use super::error::Fault;
use super::types::{decode_tensor_type, encode_tensor_type};

pub(super) fn encode_literal(literal: &Literal) -> Result<mil::Value, Fault> {
    let kind = match &literal.payload {
        Payload::Blob(offset) => {
            ValueKind::BlobFile(mil::BlobFileValue { file_name: WEIGHTS_REFERENCE.into(), offset: *offset })
        }
        Payload::Bytes(bytes) => immediate(encode_bytes(&literal.ty, bytes)?),
        Payload::Strings(strings) => immediate(encode_strings(&literal.ty, strings)?),
    };
    Ok(mil::Value {
        doc_string: String::new(),
        r#type: Some(encode_tensor_type(&literal.ty)),
        kind: Some(kind),
    })
}

fn immediate(elements: Elements) -> ValueKind {
    let tensor = mil::TensorValue { elements: Some(elements) };
    ValueKind::Immediate(mil::ImmediateValue { kind: Some(ImmediateKind::Tensor(tensor)) })
}

fn encode_strings(ty: &TensorType, strings: &[String]) -> Result<Elements, Fault> {
    if ty.dtype != DType::String {
        return Err(Fault::new("literal", format_args!("{ty} values"), "strings"));
    }
    check_count(ty, strings.len())?;
    Ok(Elements::Strings(mil::Strings { values: strings.to_vec() }))
}

fn encode_bytes(ty: &TensorType, bytes: &[u8]) -> Result<Elements, Fault> {
    if ty.packed_bytes() != Some(bytes.len()) || ty.dtype == DType::String {
        return Err(Fault::new(
            "literal",
            format_args!("{ty} values"),
            format_args!("{} bytes", bytes.len()),
        ));
    }
    Ok(match ty.dtype {
        DType::Bool => Elements::Bools(mil::Bools { values: bytes.iter().map(|&byte| byte != 0).collect() }),
        DType::I16 => ints(chunks(bytes, |b| i16::from_le_bytes(b).into())),
        DType::U16 => ints(chunks(bytes, |b| u16::from_le_bytes(b).into())),
        DType::I32 => ints(chunks(bytes, i32::from_le_bytes)),
        DType::I64 | DType::U64 => {
            Elements::LongInts(mil::LongInts { values: chunks(bytes, i64::from_le_bytes) })
        }
        DType::F32 => Elements::Floats(mil::Floats { values: chunks(bytes, f32::from_le_bytes) }),
        DType::F64 => Elements::Doubles(mil::Doubles { values: chunks(bytes, f64::from_le_bytes) }),
        _ => Elements::Bytes(mil::Bytes { values: bytes.to_vec() }),
    })
}

fn ints(values: Vec<i32>) -> Elements {
    Elements::Ints(mil::Ints { values })
}

fn chunks<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect()
}

pub(super) fn decode_literal(value: &mil::Value) -> Result<Literal, Fault> {
    let ty = decode_tensor_type(value.r#type.as_ref())?;
    let payload = match &value.kind {
        None => return Err(Fault::new("value", "an immediate or a blob", "neither")),
        Some(ValueKind::BlobFile(blob)) if blob.file_name == WEIGHTS_REFERENCE => Payload::Blob(blob.offset),
        Some(ValueKind::BlobFile(blob)) => {
            return Err(Fault::new("blob file", WEIGHTS_REFERENCE, format_args!("`{}`", blob.file_name)));
        }
        Some(ValueKind::Immediate(immediate)) => match &immediate.kind {
            Some(ImmediateKind::Tensor(mil::TensorValue { elements: Some(elements) })) => {
                decode_elements(&ty, elements)?
            }
            _ => return Err(Fault::new("value", "the elements of a tensor", "something else")),
        },
    };
    Ok(Literal { ty, payload })
}

fn decode_elements(ty: &TensorType, elements: &Elements) -> Result<Payload, Fault> {
    let bytes = match (ty.dtype, elements) {
        (DType::String, Elements::Strings(strings)) => {
            check_count(ty, strings.values.len())?;
            return Ok(Payload::Strings(strings.values.clone().into()));
        }
        (DType::Bool, Elements::Bools(bools)) => bools.values.iter().map(|&value| value.into()).collect(),
        (DType::I32, Elements::Ints(ints)) => flat(&ints.values, |v| v.to_le_bytes()),
        (DType::I16, Elements::Ints(ints)) => flat(&narrow::<i16>(ty, &ints.values)?, |v| v.to_le_bytes()),
        (DType::U16, Elements::Ints(ints)) => flat(&narrow::<u16>(ty, &ints.values)?, |v| v.to_le_bytes()),
        (DType::I64 | DType::U64, Elements::LongInts(ints)) => flat(&ints.values, |v| v.to_le_bytes()),
        (DType::F32, Elements::Floats(floats)) => flat(&floats.values, |v| v.to_le_bytes()),
        (DType::F64, Elements::Doubles(doubles)) => flat(&doubles.values, |v| v.to_le_bytes()),
        (dtype, Elements::Bytes(bytes)) if member(dtype) == "bytes" => bytes.values.clone(),
        (dtype, found) => {
            let place = format_args!("{ty} value");
            return Err(Fault::new(place, format_args!("`{}`", member(dtype)), member_of(found)));
        }
    };
    if ty.packed_bytes() != Some(bytes.len()) {
        let expected = format_args!("{} bytes of elements", ty.packed_bytes().unwrap_or_default());
        return Err(Fault::new(format_args!("{ty} value"), expected, bytes.len()));
    }
    Ok(Payload::Bytes(bytes.into()))
}

/// Concatenates the little-endian bytes of `values`.
fn flat<T: Copy, const N: usize>(values: &[T], write: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| write(value)).collect()
}

fn narrow<T: TryFrom<i32>>(ty: &TensorType, values: &[i32]) -> Result<Vec<T>, Fault> {
    let fit = |&value| {
        let place = format_args!("{ty} value").to_string();
        T::try_from(value).map_err(|_| Fault::new(place, "a number in range", value))
    };
    values.iter().map(fit).collect()
}

fn check_count(ty: &TensorType, count: usize) -> Result<(), Fault> {
    match ty.shape.checked_elements() {
        Some(elements) if elements == count => Ok(()),
        _ => Err(Fault::new("literal", format_args!("{ty} values"), format_args!("{count} of them"))),
    }
}

/// The member of a `TensorValue` that elements of `dtype` stand in.
fn member(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bools",
        DType::String => "strings",
        DType::I16 | DType::U16 | DType::I32 => "ints",
        DType::I64 | DType::U64 => "longInts",
        DType::F32 => "floats",
        DType::F64 => "doubles",
        _ => "bytes",
    }
}

fn member_of(elements: &Elements) -> &'static str {
    match elements {
        Elements::Floats(_) => "`floats`",
        Elements::Ints(_) => "`ints`",
        Elements::Bools(_) => "`bools`",
        Elements::Strings(_) => "`strings`",
        Elements::LongInts(_) => "`longInts`",
        Elements::Doubles(_) => "`doubles`",
        Elements::Bytes(_) => "`bytes`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(dtype: DType, dims: &[usize], bytes: &[u8]) -> Literal {
        Literal { ty: TensorType::new(dtype, dims.to_vec()), payload: Payload::Bytes(bytes.into()) }
    }

    fn refusal(ty: &TensorType, elements: Elements) -> Fault {
        let value = mil::Value {
            doc_string: String::new(),
            r#type: Some(encode_tensor_type(ty)),
            kind: Some(immediate(elements)),
        };
        decode_literal(&value).unwrap_err()
    }

    #[test]
    fn literals_of_every_type_survive_the_way_there_and_back() {
        let dtypes = [
            (DType::Bool, &[1, 0][..]),
            (DType::F16, &[0, 0x3c, 1, 0xc0]),
            (DType::F32, &[1, 2, 3, 4, 5, 6, 7, 8]),
            (DType::F64, &[9; 16]),
            (DType::BF16, &[0x80, 0x3f, 0, 0]),
            (DType::I4, &[0x78]),
            (DType::I8, &[0xff, 1]),
            (DType::I16, &[0xff, 0xff, 1, 0]),
            (DType::I32, &[0xff; 8]),
            (DType::I64, &[0xfe; 16]),
            (DType::U1, &[2]),
            (DType::U3, &[0x0a]),
            (DType::U6, &[0x81, 0]),
            (DType::U8, &[200, 1]),
            (DType::U16, &[0xff, 0xff, 1, 0]),
            (DType::U32, &[0xff; 8]),
            (DType::U64, &[0xff; 16]),
        ];
        for (dtype, bytes) in dtypes {
            let literal = literal(dtype, &[2], bytes);
            assert_eq!(decode_literal(&encode_literal(&literal).unwrap()), Ok(literal));
        }
        let strings = Literal {
            ty: TensorType::new(DType::String, [2]),
            payload: Payload::Strings(["a".to_owned(), String::new()].into()),
        };
        assert_eq!(decode_literal(&encode_literal(&strings).unwrap()), Ok(strings));
        let blob = Literal { ty: TensorType::new(DType::U4, [64, 48]), payload: Payload::Blob(128) };
        assert_eq!(decode_literal(&encode_literal(&blob).unwrap()), Ok(blob));
    }

    #[test]
    fn elements_in_the_wrong_member_are_refused() {
        let floats = Elements::Floats(mil::Floats { values: vec![1.0] });
        let expected = Fault::new("fp16() value", "`bytes`", "`floats`");
        assert_eq!(refusal(&TensorType::scalar(DType::F16), floats), expected);
        let long = Elements::LongInts(mil::LongInts { values: vec![1] });
        let expected = Fault::new("int32() value", "`ints`", "`longInts`");
        assert_eq!(refusal(&TensorType::scalar(DType::I32), long), expected);
        let bytes = Elements::Bytes(mil::Bytes { values: vec![0; 2] });
        let expected = Fault::new("uint16() value", "`ints`", "`bytes`");
        assert_eq!(refusal(&TensorType::scalar(DType::U16), bytes), expected);
    }

    #[test]
    fn too_few_elements_and_numbers_out_of_range_are_refused() {
        let short = Elements::Ints(mil::Ints { values: vec![1] });
        let expected = Fault::new("int32(2) value", "8 bytes of elements", 4);
        assert_eq!(refusal(&TensorType::new(DType::I32, [2]), short), expected);
        let wide = Elements::Ints(mil::Ints { values: vec![-1] });
        let expected = Fault::new("uint16() value", "a number in range", -1);
        assert_eq!(refusal(&TensorType::scalar(DType::U16), wide), expected);
        let none = Elements::Strings(mil::Strings::default());
        let expected = Fault::new("literal", "string() values", "0 of them");
        assert_eq!(refusal(&TensorType::scalar(DType::String), none), expected);
    }

    #[test]
    fn a_blob_in_another_file_is_refused() {
        let blob = Literal { ty: TensorType::f16([10]), payload: Payload::Blob(64) };
        let mut value = encode_literal(&blob).unwrap();
        value.kind =
            Some(ValueKind::BlobFile(mil::BlobFileValue { file_name: "/etc/passwd".into(), offset: 64 }));
        let expected = Fault::new("blob file", WEIGHTS_REFERENCE, "`/etc/passwd`");
        assert_eq!(decode_literal(&value), Err(expected));
    }

    #[test]
    fn a_literal_that_contradicts_its_type_is_not_written() {
        assert!(encode_literal(&literal(DType::I32, &[2], &[0; 4])).is_err());
        assert!(encode_literal(&literal(DType::String, &[], &[])).is_err());
    }
}
