//! The description of a model's features: what Core ML shows of a function without looking into it.
//!
//! It repeats the names, types and order that the function itself has, and nothing checks that the two agree
//! but us.

use std::collections::BTreeSet;

use crate::ops::Opset;
use crate::proto::model::{
    ArrayFeatureType, FeatureDescription, FeatureKind, FeatureType, ModelDescription, StateFeatureType,
};
use crate::{DType, Function, Program, TensorType, ValueId, ValueType};

use super::FUNCTIONS_SINCE;
use super::encode::LONE_FUNCTION;
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
        for (list, name, ty) in ports(function) {
            let feature =
                encode_feature(name, ty).map_err(|fault| fault.within(format_args!("{list}: `{name}`")))?;
            match list {
                "outputs" => features.outputs.push(feature),
                "states" => features.states.push(feature),
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
        ValueType::Tensor(_) => ("inputs", name, ty),
        ValueType::State(_) => ("states", name, ty),
    });
    inputs.chain(function.outputs.iter().map(port).map(|(name, ty)| ("outputs", name, ty)))
}

/// The lowest specification version that the features of `function` need.
pub(super) fn version_needed(function: &Function) -> i32 {
    let version = |ty: &ValueType| match ty {
        ValueType::State(_) => FUNCTIONS_SINCE,
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

/// What a description says there is.
#[derive(Debug)]
pub(super) struct Described {
    /// The functions, in the order they are listed.
    pub(super) functions: Vec<(String, Features)>,
    pub(super) default_function: String,
    version: i32,
}

impl Described {
    pub(super) fn decode(message: &ModelDescription, version: i32) -> Result<Self, Fault> {
        let ModelDescription { input, output, state, functions, default_function_name, .. } = message;
        if functions.is_empty() {
            let features = Features { inputs: input.clone(), outputs: output.clone(), states: state.clone() };
            let functions = vec![(LONE_FUNCTION.to_owned(), features)];
            return Ok(Described { functions, default_function: LONE_FUNCTION.into(), version });
        }
        if version < FUNCTIONS_SINCE {
            let place = "specification version";
            return Err(Fault::new(place, format_args!("{FUNCTIONS_SINCE} or more, for functions"), version));
        }
        if !input.is_empty() || !output.is_empty() || !state.is_empty() {
            return Err(Fault::new("description", "features of functions only", "features of the model"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = functions.iter().find(|function| !names.insert(&function.name)) {
            let found = format_args!("`{}` twice", twice.name).to_string();
            return Err(Fault::new("description", "functions with names of their own", found));
        }
        if !names.contains(default_function_name) {
            let found = format_args!("`{default_function_name}`").to_string();
            return Err(Fault::new("default function", "the name of a function", found));
        }
        let functions = functions.iter().map(|function| {
            let features = Features {
                inputs: function.input.clone(),
                outputs: function.output.clone(),
                states: function.state.clone(),
            };
            (function.name.clone(), features)
        });
        let default_function = default_function_name.clone();
        Ok(Described { functions: functions.collect(), default_function, version })
    }

    /// Checks that the functions of `program`, in the order described, have just these features.
    pub(super) fn check(&self, program: &Program) -> Result<(), Fault> {
        for ((name, features), function) in self.functions.iter().zip(&program.functions) {
            let checked = features.check(function, self.version);
            checked.map_err(|fault| fault.within(format_args!("description of `{name}`")))?;
        }
        Ok(())
    }
}

impl Features {
    /// Checks that `function` has just these features, the outputs in this order, and that `version` has such.
    fn check(&self, function: &Function, version: i32) -> Result<(), Fault> {
        // Apple's tools look at the opset of `main` alone when they lower the version to the least one possible.
        let lone = Opset::from_name(&function.opset).filter(|_| function.name == LONE_FUNCTION);
        let needed = version_needed(function).max(lone.map_or(0, Opset::specification_version));
        if version < needed {
            return Err(Fault::new("specification version", format_args!("{needed} or more"), version));
        }
        check_list("inputs", &self.inputs, function, false)?;
        check_list("states", &self.states, function, false)?;
        check_list("outputs", &self.outputs, function, true)
    }
}

/// Checks one list of features against the ports of the same kind.
fn check_list(
    list: &'static str,
    features: &[FeatureDescription],
    function: &Function,
    ordered: bool,
) -> Result<(), Fault> {
    let mut ports: Vec<_> =
        ports(function).filter(|port| port.0 == list).map(|port| (port.1, port.2)).collect();
    let mut features: Vec<_> = features.iter().map(|feature| (&*feature.name, feature)).collect();
    if !ordered {
        ports.sort_by_key(|port| port.0);
        features.sort_by_key(|feature| feature.0);
    }
    for i in 0..ports.len().max(features.len()) {
        let (expected, found) = (ports.get(i).map(|port| port.0), features.get(i).map(|feature| feature.0));
        if expected != found {
            let name = |name: Option<&str>| name.map_or("no more".into(), |name| format!("`{name}`"));
            return Err(Fault::new(list, name(expected), name(found)));
        }
    }
    for ((name, ty), (_, feature)) in ports.into_iter().zip(features) {
        check_feature(feature, ty).map_err(|fault| fault.within(format_args!("{list}: `{name}`")))?;
    }
    Ok(())
}

fn check_feature(feature: &FeatureDescription, ty: &ValueType) -> Result<(), Fault> {
    let feature = feature.r#type.as_ref();
    if feature.is_some_and(|feature| feature.is_optional) {
        return Err(Fault::new("presence", "always", "optional"));
    }
    let array = match (ty, feature.and_then(|feature| feature.kind.as_ref())) {
        (ValueType::Tensor(_), Some(FeatureKind::MultiArray(array))) => Some(array),
        (ValueType::State(_), Some(FeatureKind::State(state))) => state.array_type.as_ref(),
        _ => None,
    };
    let expected = match ty {
        ValueType::Tensor(_) => "a multi-array",
        ValueType::State(_) => "a state",
    };
    check_array(array.ok_or_else(|| Fault::new("kind", expected, "another kind"))?, ty.tensor())
}

fn check_array(array: &ArrayFeatureType, ty: &TensorType) -> Result<(), Fault> {
    if array.enumerated_shapes.is_some() || array.shape_range.is_some() {
        return Err(Fault::new("shape", "a fixed one", "a flexible one"));
    }
    match feature_type(ty.dtype) {
        Some(row) if row.1 == array.data_type => {}
        row => {
            let expected =
                row.map_or_else(|| "one that features can have".into(), |row| format!("{:#x}", row.1));
            return Err(Fault::new("element type", expected, format_args!("{:#x}", array.data_type)));
        }
    }
    let same =
        array.shape.iter().map(|&dim| usize::try_from(dim).ok()).eq(ty.shape.iter().copied().map(Some));
    // A scalar is described as an array of one element.
    if same || (ty.shape.is_empty() && array.shape == [1]) {
        return Ok(());
    }
    Err(Fault::new("shape", &ty.shape, format_args!("{:?}", array.shape)))
}
