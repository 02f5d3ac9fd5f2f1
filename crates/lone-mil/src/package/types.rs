//! Types, to and from their messages. Only what a static program can hold is accepted.

use std::collections::BTreeMap;

use crate::proto::mil;
use crate::proto::mil::{DimensionKind, TypeKind};
use crate::{TensorType, ValueType};

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
