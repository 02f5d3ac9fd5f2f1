//! Constants, to and from their messages.
//!
//! Which member of a `TensorValue` holds the elements depends on their type; a literal in another member is
//! refused, although some readers take it.

use crate::proto::mil;
use crate::proto::mil::{Elements, ImmediateKind, ValueKind};
use crate::{DType, Literal, Payload, TensorType};

use super::WEIGHTS_REFERENCE;
use super::error::Fault;
use super::types::encode_tensor_type;

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

fn check_count(ty: &TensorType, count: usize) -> Result<(), Fault> {
    match ty.shape.checked_elements() {
        Some(elements) if elements == count => Ok(()),
        _ => Err(Fault::new("literal", format_args!("{ty} values"), format_args!("{count} of them"))),
    }
}
