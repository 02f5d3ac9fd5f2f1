//! Types, to and from their messages. Only what a static program can hold is accepted.

use std::collections::BTreeMap;

use crate::proto::mil;
use crate::proto::mil::{DimensionKind, TypeKind};
use crate::{DType, TensorType, ValueType};

use super::error::Fault;

pub(super) fn encode_tensor_type(ty: &TensorType) -> mil::ValueType {
    mil::ValueType { kind: Some(TypeKind::Tensor(tensor_message(ty))) }
}

pub(super) fn encode_value_type(ty: &ValueType) -> mil::ValueType {
    match ty {
        ValueType::Tensor(ty) => encode_tensor_type(ty),
        ValueType::State(ty) => {
            let wrapped_type = Some(Box::new(encode_tensor_type(ty)));
            mil::ValueType { kind: Some(TypeKind::State(Box::new(mil::StateType { wrapped_type }))) }
        }
    }
}

fn tensor_message(ty: &TensorType) -> mil::TensorType {
    let dimension = |&size: &usize| mil::Dimension {
        kind: Some(DimensionKind::Constant(mil::ConstantDimension { size: size as u64 })),
    };
    mil::TensorType {
        data_type: ty.dtype.proto_code(),
        rank: ty.shape.len() as i64,
        dimensions: ty.shape.iter().map(dimension).collect(),
        attributes: BTreeMap::new(),
    }
}

pub(super) fn decode_value_type(message: Option<&mil::ValueType>) -> Result<ValueType, Fault> {
    let kind = message.and_then(|message| message.kind.as_ref());
    match kind {
        Some(TypeKind::Tensor(tensor)) => decode_tensor(tensor).map(ValueType::Tensor),
        Some(TypeKind::State(state)) => {
            decode_tensor_type(state.wrapped_type.as_deref()).map(ValueType::State)
        }
        _ => Err(Fault::new("type", "a tensor or a state", kind_name(kind))),
    }
}

pub(super) fn decode_tensor_type(message: Option<&mil::ValueType>) -> Result<TensorType, Fault> {
    match message.and_then(|message| message.kind.as_ref()) {
        Some(TypeKind::Tensor(tensor)) => decode_tensor(tensor),
        kind => Err(Fault::new("type", "a tensor", kind_name(kind))),
    }
}

fn kind_name(kind: Option<&TypeKind>) -> &'static str {
    match kind {
        None => "none",
        Some(TypeKind::Tensor(_)) => "a tensor",
        Some(TypeKind::List(_)) => "a list",
        Some(TypeKind::Tuple(_)) => "a tuple",
        Some(TypeKind::Dictionary(_)) => "a dictionary",
        Some(TypeKind::State(_)) => "a state",
    }
}

fn decode_tensor(message: &mil::TensorType) -> Result<TensorType, Fault> {
    let code = message.data_type;
    let dtype = DType::from_proto_code(code)
        .ok_or_else(|| Fault::new("element type", "the code of a type known here", code))?;
    if message.rank != message.dimensions.len() as i64 {
        let expected = format!("{}, as there are dimensions", message.dimensions.len());
        return Err(Fault::new("rank", expected, message.rank));
    }
    let dims = message.dimensions.iter().enumerate().map(|(axis, dimension)| {
        let wrong = |found: &str| Fault::new(format_args!("dimension {axis}"), "a fixed size", found);
        match &dimension.kind {
            Some(DimensionKind::Constant(constant)) => {
                usize::try_from(constant.size).map_err(|_| wrong(&constant.size.to_string()))
            }
            Some(DimensionKind::Unknown(_)) => Err(wrong("a flexible one")),
            None => Err(wrong("none")),
        }
    });
    let ty = TensorType::new(dtype, dims.collect::<Result<Vec<_>, _>>()?);
    match ty.packed_bytes() {
        Some(_) => Ok(ty),
        None => Err(Fault::new("type", "a size in bytes that can be addressed", ty)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_survive_the_way_there_and_back() {
        for ty in [TensorType::scalar(DType::String), TensorType::new(DType::U3, [4, 1, 7])] {
            let state = ValueType::State(ty.clone());
            assert_eq!(decode_value_type(Some(&encode_value_type(&state))), Ok(state));
            assert_eq!(decode_tensor_type(Some(&encode_tensor_type(&ty))), Ok(ty));
        }
    }

    #[test]
    fn what_is_not_a_static_tensor_is_refused() {
        let good = tensor_message(&TensorType::f16([2, 3]));
        let refusal = |message| {
            decode_tensor_type(Some(&mil::ValueType { kind: Some(TypeKind::Tensor(message)) })).unwrap_err()
        };
        let mut message = good.clone();
        message.rank = 1;
        assert_eq!(refusal(message), Fault::new("rank", "2, as there are dimensions", 1));
        let mut message = good.clone();
        message.data_type = 40;
        assert_eq!(refusal(message), Fault::new("element type", "the code of a type known here", 40));
        let mut message = good.clone();
        message.dimensions[1].kind = Some(DimensionKind::Unknown(mil::UnknownDimension::default()));
        assert_eq!(refusal(message), Fault::new("dimension 1", "a fixed size", "a flexible one"));
        let mut message = good;
        message.dimensions[0].kind = Some(DimensionKind::Constant(mil::ConstantDimension { size: u64::MAX }));
        let found = "fp16(18446744073709551615,3)";
        assert_eq!(refusal(message), Fault::new("type", "a size in bytes that can be addressed", found));
        let state = encode_value_type(&ValueType::State(TensorType::f16([1])));
        assert_eq!(decode_tensor_type(Some(&state)), Err(Fault::new("type", "a tensor", "a state")));
    }
}
