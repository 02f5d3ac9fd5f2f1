//! Functions built operation by operation, each checked as it is added: a wrong graph cannot be written.
//!
//! ```text
//! let x = b.input("x", TensorType::f16([1, 64, 1, 8]))?;
//! let w = b.weight("w", TensorType::f16([128, 64, 1, 1]), blob)?;
//! let y = b.conv1x1(x, w)?;                    // writes strides, pad_type, pad, dilations and groups too
//! b.name(y, "y")?;
//! b.output(y)?;
//! let function = b.finish()?;
//! ```
//! Small constants are written once a function. Values are called `v0`, `v1`, … until they are named.

mod error;
mod operations;

use std::collections::{HashMap, HashSet};

use half::f16;

pub use error::BuildError;

use crate::blob::BlobRef;
use crate::identifier::is_identifier;
use crate::ops::{self, Binding, Call, OpError, OpSpec, Opset, Presence};
use crate::program::{Arg, Def, Function, Literal, Op, Payload, Value, ValueId};
use crate::{DType, Shape, TensorType, ValueType};

/// A function in the making.
///
/// ```
/// # fn main() -> Result<(), lone_mil::BuildError> {
/// use lone_mil::{FunctionBuilder, TensorType, text};
///
/// let mut b = FunctionBuilder::new("halve");
/// let x = b.input("x", TensorType::f16([1, 64]))?;
/// let half = b.scalar_f16(0.5)?;
/// let y = b.mul(x, half)?;
/// b.name(y, "y")?;
/// b.output(y)?;
/// let function = b.finish()?;
/// assert!(text::print_function(&function).contains("y: fp16(1,64) = mul(x = x, y = v0)"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FunctionBuilder {
    function: Function,
    opset: Opset,
    names: HashSet<String>,
    /// Values whose name was chosen by the caller.
    named: HashSet<ValueId>,
    constants: HashMap<Literal, ValueId>,
    /// The number in the next generated name.
    next: u32,
}

/// What a parameter is given.
#[derive(Debug, Clone)]
pub enum Given {
    /// One value.
    Value(ValueId),
    /// Several, for a variadic parameter.
    Values(Vec<ValueId>),
    /// A constant.
    Literal(Literal),
}

impl From<ValueId> for Given {
    fn from(value: ValueId) -> Self {
        Given::Value(value)
    }
}

impl From<&[ValueId]> for Given {
    fn from(values: &[ValueId]) -> Self {
        Given::Values(values.to_vec())
    }
}

impl From<Literal> for Given {
    fn from(literal: Literal) -> Self {
        Given::Literal(literal)
    }
}

impl From<i32> for Given {
    fn from(value: i32) -> Self {
        Given::Literal(Literal::int(value))
    }
}

impl From<&[i32]> for Given {
    fn from(values: &[i32]) -> Self {
        Given::Literal(Literal::ints(values))
    }
}

impl From<bool> for Given {
    fn from(value: bool) -> Self {
        Given::Literal(Literal::bool(value))
    }
}

impl From<&str> for Given {
    fn from(value: &str) -> Self {
        Given::Literal(Literal::string(value))
    }
}

impl FunctionBuilder {
    /// An empty function for opset `CoreML8`.
    pub fn new(name: &str) -> Self {
        FunctionBuilder::with_opset(name, Opset::CoreML8)
    }

    /// An empty function for the operations of `opset`.
    pub fn with_opset(name: &str, opset: Opset) -> Self {
        FunctionBuilder {
            function: Function {
                name: name.to_owned(),
                opset: opset.name().to_owned(),
                values: Vec::new(),
                ops: Vec::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            },
            opset,
            names: HashSet::new(),
            named: HashSet::new(),
            constants: HashMap::new(),
            next: 0,
        }
    }

    /// An input tensor.
    ///
    /// # Errors
    /// [`BuildError::Name`] for a name that is taken or none; [`BuildError::Type`] for a shape without elements.
    pub fn input(&mut self, name: &str, ty: TensorType) -> Result<ValueId, BuildError> {
        self.add_input(name, ty.into())
    }

    /// A state, for `read_state` and `write_state`.
    ///
    /// # Errors
    /// As [`FunctionBuilder::input`].
    pub fn state(&mut self, name: &str, ty: TensorType) -> Result<ValueId, BuildError> {
        self.add_input(name, ValueType::State(ty))
    }

    fn add_input(&mut self, name: &str, ty: ValueType) -> Result<ValueId, BuildError> {
        if !ops::is_sized(&ty.tensor().shape) {
            return Err(self.wrong_type(name, "dimensions of at least 1", &ty));
        }
        self.take_name(name)?;
        let id = self.add_value(name.to_owned(), ty, Def::Input(self.function.inputs.len()));
        self.function.inputs.push(id);
        self.named.insert(id);
        Ok(id)
    }

    /// A constant held in `blob`. The same blob with the same type is one value, under the name it got first.
    ///
    /// # Errors
    /// [`BuildError::Type`] if the blob holds another type or number of elements; [`BuildError::Name`].
    pub fn weight(&mut self, name: &str, ty: TensorType, blob: BlobRef) -> Result<ValueId, BuildError> {
        let literal = self.blob_literal(name, ty, blob)?;
        if let Some(&known) = self.constants.get(&literal) {
            return Ok(known);
        }
        let id = self.constant(literal)?;
        self.name(id, name)
    }

    fn blob_literal(&self, name: &str, ty: TensorType, blob: BlobRef) -> Result<Literal, BuildError> {
        if blob.dtype != ty.dtype || ty.shape.checked_elements() != Some(blob.elements) {
            let found = format!("a blob of {} {}", blob.elements, blob.dtype);
            return Err(self.wrong_type(name, ty, found));
        }
        Ok(Literal { ty, payload: Payload::Blob(blob.offset) })
    }

    /// A constant, written once however often it is asked for.
    ///
    /// # Errors
    /// [`BuildError::InlineHalves`] for fp16 values that are neither a scalar nor in a blob.
    pub fn constant(&mut self, literal: Literal) -> Result<ValueId, BuildError> {
        if let Some(&known) = self.constants.get(&literal) {
            return Ok(known);
        }
        if literal.ty.dtype == DType::F16
            && !literal.ty.shape.is_empty()
            && !matches!(literal.payload, Payload::Blob(_))
        {
            return Err(BuildError::InlineHalves { function: self.function.name.clone(), ty: literal.ty });
        }
        let spec = ops::find("const", self.opset).expect("every opset has constants");
        let args = vec![Some(Arg::Literal(literal.clone()))];
        let types = self.call(spec, &args)?.infer().map_err(|source| self.wrong_op(source))?;
        let id = self.add_op(spec, args, types)[0];
        self.constants.insert(literal, id);
        Ok(id)
    }

    /// An fp16 scalar, rounded to the nearest.
    ///
    /// # Errors
    /// None in practice; as [`FunctionBuilder::constant`].
    pub fn scalar_f16(&mut self, value: f32) -> Result<ValueId, BuildError> {
        let bytes = f16::from_f32(value).to_le_bytes();
        self.constant(Literal::from_bytes(TensorType::scalar(DType::F16), &bytes))
    }

    /// Any operation: `args` by parameter name. Defaults that are left out are written as constants.
    ///
    /// # Errors
    /// [`BuildError::Op`] with the parameter that does not fit; [`BuildError::NoValue`] for a stranger's value.
    pub fn op(&mut self, name: &str, args: &[(&str, Given)]) -> Result<Vec<ValueId>, BuildError> {
        let spec = ops::find(name, self.opset).map_err(|source| self.wrong_op(source))?;
        let mut bound = vec![None; spec.params.len()];
        for (param, given) in args {
            let position = spec.position(param).ok_or_else(|| self.unknown_param(spec, param))?;
            bound[position] = Some(self.bind(spec, given.clone())?);
        }
        // Checked before the defaults are written: those may have a shape only where the operation has one.
        let call = self.call(spec, &bound)?;
        let types = call.infer().map_err(|source| self.wrong_op(source))?;
        for (param, arg) in spec.params.iter().zip(&mut bound) {
            if arg.is_none() && matches!(param.presence, Presence::Default(_)) {
                let literal = call.literal(param.name).expect("a call has its defaults").clone();
                *arg = Some(self.bind(spec, Given::Literal(literal))?);
            }
        }
        Ok(self.add_op(spec, bound, types))
    }

    fn call(&self, spec: &'static OpSpec, args: &[Option<Arg>]) -> Result<Call, BuildError> {
        Call::new(spec, &self.function, args).map_err(|source| self.wrong_op(source))
    }

    /// The argument for something given: literals become `const` operations, but for the parameters of
    /// `constexpr_*`, which hold them in place.
    fn bind(&mut self, spec: &OpSpec, given: Given) -> Result<Arg, BuildError> {
        let in_place = spec.binding != Binding::Named;
        match given {
            Given::Literal(literal) if in_place => Ok(Arg::Literal(literal)),
            Given::Literal(literal) => Ok(Arg::Value(self.constant(literal)?)),
            Given::Value(id) => {
                self.known(id)?;
                let literal = self.function.constant(id).filter(|_| in_place);
                Ok(literal.map_or(Arg::Value(id), |literal| Arg::Literal(literal.clone())))
            }
            Given::Values(ids) => {
                ids.iter().try_for_each(|&id| self.known(id))?;
                Ok(Arg::Values(ids))
            }
        }
    }

    fn add_op(
        &mut self,
        spec: &'static OpSpec,
        args: Vec<Option<Arg>>,
        types: Vec<TensorType>,
    ) -> Vec<ValueId> {
        let index = self.function.ops.len();
        let outputs: Vec<ValueId> = (types.into_iter().enumerate())
            .map(|(output, ty)| {
                let name = self.generate_name();
                self.add_value(name, ty.into(), Def::Op { op: index, output })
            })
            .collect();
        let name = match outputs[..] {
            [only] => self.function.value(only).name.clone(),
            _ => self.generate_name(),
        };
        self.function.ops.push(Op { spec, name, args, outputs: outputs.clone() });
        outputs
    }

    /// Names a value; the operation that makes it alone is called so too. Returns `value`.
    ///
    /// # Errors
    /// [`BuildError::Name`] if the name is no identifier or taken, or the value has been named before.
    pub fn name(&mut self, value: ValueId, name: &str) -> Result<ValueId, BuildError> {
        self.known(value)?;
        if self.named.contains(&value) {
            let why = format!("its value is already called `{}`", self.function.value(value).name);
            return Err(self.wrong_name(name, why));
        }
        self.take_name(name)?;
        if let Def::Op { op, .. } = self.function.value(value).def
            && self.function.ops[op].outputs.len() == 1
        {
            self.function.ops[op].name = name.to_owned();
        }
        let old = std::mem::replace(&mut self.function.values[value.index()].name, name.to_owned());
        self.names.remove(&old);
        self.named.insert(value);
        Ok(value)
    }

    /// Makes `value` the next output, under the name it has by then.
    ///
    /// # Errors
    /// [`BuildError::Output`] for an input, a constant or a value that is an output already.
    pub fn output(&mut self, value: ValueId) -> Result<(), BuildError> {
        self.known(value)?;
        let why = match self.function.value(value).def {
            Def::Input(_) => Some("it is an input; pass it through `identity`"),
            Def::Op { op, .. } if self.function.ops[op].spec.is_constant() => Some("it is a constant"),
            Def::Op { .. } if self.function.outputs.contains(&value) => Some("it is one already"),
            Def::Op { .. } => None,
        };
        if let Some(why) = why {
            let value = self.function.value(value).name.clone();
            return Err(BuildError::Output { function: self.function.name.clone(), value, why });
        }
        self.function.outputs.push(value);
        Ok(())
    }

    /// The function.
    ///
    /// # Errors
    /// [`BuildError::NoOutput`] if it has none; [`BuildError::Name`] if it cannot be called what it is.
    pub fn finish(self) -> Result<Function, BuildError> {
        if !is_identifier(&self.function.name) {
            let name = self.function.name.clone();
            return Err(self.wrong_name(&name, "it is no identifier".into()));
        }
        if self.function.outputs.is_empty() {
            return Err(BuildError::NoOutput { function: self.function.name });
        }
        Ok(self.function)
    }

    /// The type of a value of this function.
    ///
    /// # Panics
    /// If `value` is another function's and beyond this one's.
    pub fn ty(&self, value: ValueId) -> &TensorType {
        self.function.value(value).ty.tensor()
    }

    /// The shape of a value of this function.
    ///
    /// # Panics
    /// As [`FunctionBuilder::ty`].
    pub fn shape(&self, value: ValueId) -> &Shape {
        &self.ty(value).shape
    }

    fn add_value(&mut self, name: String, ty: ValueType, def: Def) -> ValueId {
        let id = ValueId(self.function.values.len() as u32);
        self.function.values.push(Value { name, ty, def });
        id
    }

    fn generate_name(&mut self) -> String {
        loop {
            let name = format!("v{}", self.next);
            self.next += 1;
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    fn take_name(&mut self, name: &str) -> Result<(), BuildError> {
        if !is_identifier(name) {
            return Err(self.wrong_name(name, "it is no identifier".into()));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(self.wrong_name(name, "it is taken".into()));
        }
        Ok(())
    }

    fn known(&self, id: ValueId) -> Result<(), BuildError> {
        match self.function.values.get(id.index()) {
            Some(_) => Ok(()),
            None => Err(BuildError::NoValue { function: self.function.name.clone(), id: id.0 }),
        }
    }

    fn wrong_op(&self, source: OpError) -> BuildError {
        BuildError::Op { function: self.function.name.clone(), op: self.function.ops.len(), source }
    }

    fn wrong_name(&self, name: &str, why: String) -> BuildError {
        BuildError::Name { function: self.function.name.clone(), name: name.to_owned(), why }
    }

    fn wrong_type(
        &self,
        name: &str,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> BuildError {
        BuildError::Type {
            function: self.function.name.clone(),
            name: name.to_owned(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    fn unknown_param(&self, spec: &OpSpec, param: &str) -> BuildError {
        let known: Vec<&str> = spec.params.iter().map(|param| param.name).collect();
        self.wrong_op(OpError::UnknownParam {
            op: spec.name,
            param: param.to_owned(),
            known: known.join(", "),
        })
    }
}

#[cfg(test)]
mod tests;
