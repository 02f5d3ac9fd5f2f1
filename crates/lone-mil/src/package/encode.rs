//! A program as the messages of a `model.mlmodel`. It has been verified before.

use std::collections::BTreeMap;

use crate::ops::{Binding, Opset};
use crate::proto::mil::{Argument, BindingKind, Block, NamedValueType, Operation};
use crate::proto::{mil, model};
use crate::{Arg, Function, Literal, Op, Payload, Program, ValueId};

use super::description::{Features, version_needed};
use super::error::Fault;
use super::literal::encode_literal;
use super::types::encode_value_type;
use super::{FUNCTIONS_SINCE, Metadata};

/// The only function of a model in the form that came before there could be several.
pub(super) const LONE_FUNCTION: &str = "main";

pub(super) fn encode_model(program: &Program, metadata: &Metadata) -> Result<model::Model, Fault> {
    let mut functions = BTreeMap::new();
    let mut features = Vec::new();
    for function in &program.functions {
        let within = |fault: Fault| fault.within(format_args!("function `{}`", function.name));
        features.push(Features::of(function).map_err(within)?);
        functions.insert(function.name.clone(), encode_function(function).map_err(within)?);
    }
    let version = specification_version(program);
    let mut description =
        if version < FUNCTIONS_SINCE { describe_lone(features) } else { describe_all(program, features) };
    description.metadata = metadata.encode();
    Ok(model::Model {
        specification_version: version,
        description: Some(description),
        ml_program: Some(mil::Program { version: 1, functions, ..Default::default() }),
    })
}

/// The lowest version that can say all of `program`. An older opset keeps its older version, which only a lone
/// `main` can have: readers choose the meaning of operations by the version.
fn specification_version(program: &Program) -> i32 {
    let needed = |function: &Function| {
        let opset = Opset::from_name(&function.opset).map_or(1, Opset::specification_version);
        opset.max(version_needed(function))
    };
    let version = program.functions.iter().map(needed).max().unwrap_or(1);
    match &program.functions[..] {
        [function] if function.name == LONE_FUNCTION => version,
        _ => version.max(FUNCTIONS_SINCE),
    }
}

fn describe_lone(features: Vec<Features>) -> model::ModelDescription {
    let Features { inputs, outputs, states } = features.into_iter().next().unwrap_or_default();
    model::ModelDescription { input: inputs, output: outputs, state: states, ..Default::default() }
}

fn describe_all(program: &Program, features: Vec<Features>) -> model::ModelDescription {
    let describe = |(function, features): (&Function, Features)| model::FunctionDescription {
        name: function.name.clone(),
        input: features.inputs,
        output: features.outputs,
        state: features.states,
    };
    model::ModelDescription {
        functions: program.functions.iter().zip(features).map(describe).collect(),
        default_function_name: program.default_function.clone(),
        ..Default::default()
    }
}

fn encode_function(function: &Function) -> Result<mil::Function, Fault> {
    let operations = function.ops.iter().enumerate().map(|(index, op)| {
        encode_op(function, op).map_err(|fault| fault.within(op_place(index, op.spec.name, &op.name)))
    });
    let block = Block {
        outputs: function.outputs.iter().map(|&id| function.value(id).name.clone()).collect(),
        operations: operations.collect::<Result<_, _>>()?,
        ..Default::default()
    };
    Ok(mil::Function {
        inputs: function.inputs.iter().map(|&id| named_type(function, id)).collect(),
        opset: function.opset.clone(),
        block_specializations: [(function.opset.clone(), block)].into(),
        attributes: BTreeMap::new(),
    })
}

/// How messages call an operation.
pub(super) fn op_place(index: usize, op: &str, name: &str) -> String {
    format!("operation {index}, {op} `{name}`")
}

fn named_type(function: &Function, id: ValueId) -> NamedValueType {
    let value = function.value(id);
    NamedValueType { name: value.name.clone(), r#type: Some(encode_value_type(&value.ty)) }
}

fn encode_op(function: &Function, op: &Op) -> Result<Operation, Fault> {
    let mut inputs = BTreeMap::new();
    let mut attributes = BTreeMap::from([("name".to_owned(), encode_literal(&Literal::string(&op.name))?)]);
    let in_attributes = op.spec.binding == Binding::Attributes;
    for (param, arg) in op.spec.params.iter().zip(&op.args) {
        let Some(arg) = arg else { continue };
        let within = |fault: Fault| fault.within(format_args!("parameter `{}`", param.name));
        match arg {
            Arg::Literal(literal) if in_attributes => {
                attributes.insert(param.name.into(), encode_literal(literal).map_err(within)?);
            }
            _ if in_attributes => return Err(within(Fault::new("value", "a literal", "a reference"))),
            _ => {
                let arguments = encode_bindings(function, op, arg).map_err(within)?;
                inputs.insert(param.name.into(), Argument { arguments });
            }
        }
    }
    let outputs = op.outputs.iter().map(|&id| named_type(function, id)).collect();
    Ok(Operation { r#type: op.spec.name.into(), inputs, outputs, blocks: Vec::new(), attributes })
}

fn encode_bindings(function: &Function, op: &Op, arg: &Arg) -> Result<Vec<mil::Binding>, Fault> {
    let name =
        |id: &ValueId| mil::Binding { kind: Some(BindingKind::Name(function.value(*id).name.clone())) };
    Ok(match arg {
        Arg::Value(id) => vec![name(id)],
        Arg::Values(ids) => ids.iter().map(name).collect(),
        Arg::Literal(Literal { payload: Payload::Blob(_), .. }) if op.spec.binding == Binding::Named => {
            return Err(Fault::new("value", "a const operation for a blob", "the blob in place"));
        }
        Arg::Literal(literal) => {
            vec![mil::Binding { kind: Some(BindingKind::Value(encode_literal(literal)?)) }]
        }
    })
}
