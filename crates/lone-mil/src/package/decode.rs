//! A program out of the messages of a `model.mlmodel`, refusing whatever this crate cannot stand for.
//!
//! Here messages become a program, whatever it says; whether that holds together, [`verify`](crate::verify) checks.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use crate::ops::{self, Binding, Opset};
use crate::proto::mil::{Argument, BindingKind, NamedValueType, Operation, Value as ValueMessage};
use crate::proto::{mil, model};
use crate::{Arg, Def, Function, Literal, Op, Payload, Program, Value, ValueId};

use super::Metadata;
use super::description::Described;
use super::encode::op_place;
use super::error::Fault;
use super::literal::decode_literal;
use super::types::decode_value_type;

/// The specification versions that ML Programs have had.
const VERSIONS: RangeInclusive<i32> = 6..=10;
/// The one version of MIL's container format.
const PROGRAM_VERSION: i64 = 1;
/// The only attribute that a program may have: a dictionary of tool versions.
const BUILD_INFO: &str = "buildInfo";

pub(super) fn decode_model(model: &model::Model) -> Result<(Program, Described, Metadata), Fault> {
    let version = model.specification_version;
    if !VERSIONS.contains(&version) {
        return Err(Fault::new("specification version", "6 to 10", version));
    }
    let missing = |what, expected| Fault::new(what, expected, "none");
    let program = model.ml_program.as_ref().ok_or_else(|| missing("model", "an ML Program"))?;
    let description =
        model.description.as_ref().ok_or_else(|| missing("description", "one of the features"))?;
    let described = Described::decode(description, version)?;
    check_program(program, &described)?;
    let functions = described.functions.iter().map(|(name, _)| {
        let function = decode_function(name, &program.functions[name]);
        function.map_err(|fault| fault.within(format_args!("function `{name}`")))
    });
    let functions = functions.collect::<Result<_, _>>()?;
    let metadata = description.metadata.as_ref().map(Metadata::decode).unwrap_or_default();
    let default_function = described.default_function.clone();
    Ok((Program { functions, default_function }, described, metadata))
}

/// Checks the program apart from its functions, which must be just those that are described.
fn check_program(program: &mil::Program, described: &Described) -> Result<(), Fault> {
    if program.version != PROGRAM_VERSION {
        return Err(Fault::new("version of the program", PROGRAM_VERSION, program.version));
    }
    if let Some(name) = program.attributes.keys().find(|&name| name != BUILD_INFO) {
        return Err(Fault::new("attributes of the program", "buildInfo only", format_args!("`{name}`")));
    }
    for (name, _) in &described.functions {
        if !program.functions.contains_key(name) {
            let found =
                program.functions.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(Fault::new("functions", format_args!("`{name}`, which is described"), found));
        }
    }
    match program.functions.keys().find(|&name| described.functions.iter().all(|row| row.0 != *name)) {
        Some(name) => Err(Fault::new("functions", "described ones only", format_args!("`{name}`"))),
        None => Ok(()),
    }
}

/// The values defined so far, by name.
#[derive(Default)]
struct Scope {
    values: Vec<Value>,
    ids: HashMap<String, ValueId>,
}

impl Scope {
    fn define(&mut self, message: &NamedValueType, def: Def) -> Result<ValueId, Fault> {
        let name = &message.name;
        let ty = decode_value_type(message.r#type.as_ref())
            .map_err(|fault| fault.within(format_args!("`{name}`")))?;
        let id = ValueId(self.values.len() as u32);
        if self.ids.insert(name.clone(), id).is_some() {
            return Err(Fault::new("name", "one that is not taken", format_args!("`{name}` again")));
        }
        self.values.push(Value { name: name.clone(), ty, def });
        Ok(id)
    }

    fn find(&self, name: &str) -> Result<ValueId, Fault> {
        let found = format_args!("`{name}`").to_string();
        self.ids.get(name).copied().ok_or_else(|| Fault::new("name", "a value defined before", found))
    }
}

fn decode_function(name: &str, message: &mil::Function) -> Result<Function, Fault> {
    let unknown = || Fault::new("opset", "CoreML5 to CoreML9", format_args!("`{}`", message.opset));
    let opset = Opset::from_name(&message.opset).ok_or_else(unknown)?;
    let block = message.block_specializations.get(&message.opset).ok_or_else(|| {
        let found = message.block_specializations.keys().cloned().collect::<Vec<_>>().join(", ");
        Fault::new("body", format_args!("one for {}", message.opset), format_args!("those for: {found}"))
    })?;
    if !block.inputs.is_empty() || !message.attributes.is_empty() || !block.attributes.is_empty() {
        return Err(Fault::new("body", "neither attributes nor inputs of its own", "some"));
    }
    let mut scope = Scope::default();
    let mut inputs = Vec::new();
    for (position, input) in message.inputs.iter().enumerate() {
        let defined = scope.define(input, Def::Input(position));
        inputs.push(defined.map_err(|fault| fault.within(format_args!("input {position}")))?);
    }
    let mut ops = Vec::new();
    for (index, operation) in block.operations.iter().enumerate() {
        let place = || op_place(index, &operation.r#type, &first_name(operation));
        ops.push(decode_op(&mut scope, index, operation, opset).map_err(|fault| fault.within(place()))?);
    }
    let outputs = block.outputs.iter().map(|name| scope.find(name).map_err(|fault| fault.within("outputs")));
    let outputs = outputs.collect::<Result<_, _>>()?;
    Ok(Function {
        name: name.into(),
        opset: message.opset.clone(),
        values: scope.values,
        ops,
        inputs,
        outputs,
    })
}

/// What an operation is called in messages, before its name is known to be good.
fn first_name(operation: &Operation) -> String {
    operation.outputs.first().map(|output| output.name.clone()).unwrap_or_default()
}

fn decode_op(scope: &mut Scope, index: usize, message: &Operation, opset: Opset) -> Result<Op, Fault> {
    let spec = ops::find(&message.r#type, opset).map_err(|_| {
        let expected = format_args!("one that is known here, of opset {}", opset.name()).to_string();
        Fault::new("operation", expected, format_args!("`{}`", message.r#type))
    })?;
    if !message.blocks.is_empty() {
        return Err(Fault::new("blocks", "none", message.blocks.len()));
    }
    let mut args = vec![None; spec.params.len()];
    let mut bind = |name: &str, arg: Result<Arg, Fault>| {
        let place = format!("parameter `{name}`");
        let known = || spec.params.iter().map(|param| param.name).collect::<Vec<_>>().join(", ");
        let position = spec.position(name);
        let position = position.ok_or_else(|| Fault::new("parameters", known(), format_args!("`{name}`")))?;
        args[position] = Some(arg.map_err(|fault| fault.within(place))?);
        Ok(())
    };
    for (name, argument) in &message.inputs {
        if spec.binding == Binding::Attributes {
            return Err(Fault::new("inputs", "none", format_args!("`{name}`")));
        }
        let variadic = spec.position(name).is_some_and(|position| spec.params[position].variadic);
        bind(name, decode_argument(scope, argument, variadic, spec.binding))?;
    }
    for (name, value) in message.attributes.iter().filter(|(name, _)| *name != "name") {
        if spec.binding != Binding::Attributes {
            return Err(Fault::new("attributes", "`name` only", format_args!("`{name}`")));
        }
        bind(name, decode_literal(value).map(Arg::Literal))?;
    }
    let name = decode_name(&message.attributes)?;
    let define = |(output, message)| scope.define(message, Def::Op { op: index, output });
    let outputs = message.outputs.iter().enumerate().map(define).collect::<Result<_, _>>();
    Ok(Op { spec, name, args, outputs: outputs.map_err(|fault| fault.within("outputs"))? })
}

fn decode_name(attributes: &BTreeMap<String, ValueMessage>) -> Result<String, Fault> {
    let value = attributes.get("name").ok_or_else(|| Fault::new("attribute `name`", "a string", "none"))?;
    match decode_literal(value).map_err(|fault| fault.within("attribute `name`"))? {
        Literal { payload: Payload::Strings(strings), ty } if ty.shape.is_empty() => Ok(strings[0].clone()),
        literal => Err(Fault::new("attribute `name`", "a string", literal.ty)),
    }
}

fn decode_argument(
    scope: &Scope,
    argument: &Argument,
    variadic: bool,
    binding: Binding,
) -> Result<Arg, Fault> {
    let reference = |message: &mil::Binding| match &message.kind {
        Some(BindingKind::Name(name)) => scope.find(name),
        Some(BindingKind::Value(_)) => {
            Err(Fault::new("values", "names, where there are several", "a literal"))
        }
        None => Err(Fault::new("value", "a name or a literal", "neither")),
    };
    match &argument.arguments[..] {
        [] => Err(Fault::new("value", "a name or a literal", "none")),
        [mil::Binding { kind: Some(BindingKind::Value(value)) }] if !variadic => {
            let literal = decode_literal(value)?;
            match literal.payload {
                Payload::Blob(_) if binding == Binding::Named => {
                    Err(Fault::new("value", "a const operation for a blob", "the blob in place"))
                }
                _ => Ok(Arg::Literal(literal)),
            }
        }
        [one] if !variadic => reference(one).map(Arg::Value),
        several => several.iter().map(reference).collect::<Result<_, _>>().map(Arg::Values),
    }
}
