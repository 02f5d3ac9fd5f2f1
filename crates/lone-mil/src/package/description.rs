//! The description of a model's features: what Core ML shows of a function without looking into it.
//!
//! It repeats the names, types and order that the function itself has, and nothing checks that the two agree
//! but us.

use crate::proto::model::{ArrayFeatureType, FeatureDescription, FeatureKind, FeatureType, StateFeatureType};
use crate::{DType, Function, TensorType, ValueId, ValueType};

use super::error::Fault;

/// Element types that features can have, with their `MLMultiArrayDataType` and the first specification version that
/// takes them.
const FEATURE_TYPES: [(DType, i32, i32); 5] = [
    (DType::F16, 0x10010, 7),
    (DType::F32, 0x10020, 1),
    (DType::F64, 0x10040, 1),
    (DType::I32, 0x20020, 1),
    (DType::I8, 0x20008, 10),
];

/// The features of one function.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Features {
    pub(super) inputs: Vec<FeatureDescription>,
    pub(super) outputs: Vec<FeatureDescription>,
    pub(super) states: Vec<FeatureDescription>,
}

impl Features {
    /// The features that `function` has.
    pub(super) fn of(function: &Function) -> Result<Self, Fault> {
        let mut features = Features::default();
        for (place, name, ty) in ports(function) {
            let feature =
                encode_feature(name, ty).map_err(|fault| fault.within(format_args!("{place} `{name}`")))?;
            match place {
                "output" => features.outputs.push(feature),
                "state" => features.states.push(feature),
                _ => features.inputs.push(feature),
            }
        }
        Ok(features)
    }
}

/// Inputs, states and outputs of a function, each with the list it belongs to.
fn ports(function: &Function) -> impl Iterator<Item = (&'static str, &str, &ValueType)> {
    let port = |id: &ValueId| (function.value(*id).name.as_str(), &function.value(*id).ty);
    let inputs = function.inputs.iter().map(port).map(|(name, ty)| match ty {
        ValueType::Tensor(_) => ("input", name, ty),
        ValueType::State(_) => ("state", name, ty),
    });
    inputs.chain(function.outputs.iter().map(port).map(|(name, ty)| ("output", name, ty)))
}

/// The lowest specification version that the features of `function` need.
pub(super) fn version_needed(function: &Function) -> i32 {
    let version = |ty: &ValueType| match ty {
        ValueType::State(_) => super::FUNCTIONS_SINCE,
        ValueType::Tensor(ty) => feature_type(ty.dtype).map_or(1, |row| row.2),
    };
    ports(function).map(|(_, _, ty)| version(ty)).max().unwrap_or(1)
}

fn feature_type(dtype: DType) -> Option<&'static (DType, i32, i32)> {
    FEATURE_TYPES.iter().find(|row| row.0 == dtype)
}

fn encode_feature(name: &str, ty: &ValueType) -> Result<FeatureDescription, Fault> {
    let kind = match ty {
        ValueType::Tensor(ty) => FeatureKind::MultiArray(encode_array(ty)?),
        ValueType::State(ty) if ty.dtype == DType::F16 => {
            FeatureKind::State(StateFeatureType { array_type: Some(encode_array(ty)?) })
        }
        ValueType::State(ty) => return Err(Fault::new("type of a state", "fp16", ty)),
    };
    let r#type = Some(FeatureType { kind: Some(kind), is_optional: false });
    Ok(FeatureDescription { name: name.into(), short_description: String::new(), r#type })
}

fn encode_array(ty: &TensorType) -> Result<ArrayFeatureType, Fault> {
    let expected = "fp16, fp32, fp64, int32 or int8 of rank 1 or more";
    let row = feature_type(ty.dtype).filter(|_| !ty.shape.is_empty());
    let data_type = row.ok_or_else(|| Fault::new("type of a feature", expected, ty))?.1;
    let shape = ty.shape.iter().map(|&dim| dim as i64).collect();
    Ok(ArrayFeatureType { shape, data_type, ..Default::default() })
}
