//! The program in memory: functions whose values and operations live in arenas and name each other by index.
//!
//! ```text
//! Function  inputs [v0 v1]   values [v0 v1 v2 …]   ops [const w, conv(x: v0, weight: v2) -> v3, …]
//! ```
//! Operations stand in execution order, each value has one definition, and everything is static single
//! assignment. A `const` is an operation too, as in the file format, so that order and names survive a round
//! trip. Weights are never held here: a [`Payload::Blob`] is an offset into the package's `weight.bin`.

use std::sync::Arc;

use crate::ops::OpSpec;
use crate::{BackendError, TensorType, ValueType};

/// A whole ML Program: functions that may point at the same blobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The functions, in the order they are written and listed.
    pub functions: Vec<Function>,
    /// The function that runs when none is named.
    pub default_function: String,
}

impl Program {
    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The functions of those names, in their order; all if there are none.
    ///
    /// # Errors
    /// [`BackendError::NoFunction`] for a name that no function has.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&Function>, BackendError> {
        if names.is_empty() {
            return Ok(self.functions.iter().collect());
        }
        let available = || self.functions.iter().map(|function| function.name.clone()).collect();
        let find = |name: &String| {
            let function = self.function(name);
            function
                .ok_or_else(|| BackendError::NoFunction { function: name.clone(), available: available() })
        };
        names.iter().map(find).collect()
    }
}

/// Index of a [`Value`] in its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The index into [`Function::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One function: a straight line of operations from inputs to outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The name it is called by.
    pub name: String,
    /// The opset its operations belong to, such as `CoreML8`.
    pub opset: String,
    /// All values, inputs first.
    pub values: Vec<Value>,
    /// All operations, in execution order.
    pub ops: Vec<Op>,
    /// The inputs, in signature order.
    pub inputs: Vec<ValueId>,
    /// The outputs, in signature order; their value names are the output names.
    pub outputs: Vec<ValueId>,
}

impl Function {
    /// The value behind an id of this function.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The id of the value of that name.
    pub fn value_named(&self, name: &str) -> Option<ValueId> {
        self.values.iter().position(|value| value.name == name).map(|i| ValueId(i as u32))
    }

    /// The literal behind `id`, if a `const` defines it.
    pub fn constant(&self, id: ValueId) -> Option<&Literal> {
        match self.value(id).def {
            Def::Op { op, .. } if self.ops[op].spec.name == "const" => match self.ops[op].args.first() {
                Some(Some(Arg::Literal(literal))) => Some(literal),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A value: its name, its type and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Unique within the function.
    pub name: String,
    /// Static type.
    pub ty: ValueType,
    /// The definition.
    pub def: Def,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Def {
    /// The function's input with this position.
    Input(usize),
    /// Output number `output` of the operation with index `op`.
    Op {
        /// Index into [`Function::ops`].
        op: usize,
        /// Which of its outputs.
        output: usize,
    },
}

/// One operation.
#[derive(Debug, Clone)]
pub struct Op {
    /// Its row in the table of operations.
    pub spec: &'static OpSpec,
    /// Its `name` attribute.
    pub name: String,
    /// One entry per parameter of [`OpSpec::params`], in that order; `None` where an optional one is absent.
    pub args: Vec<Option<Arg>>,
    /// The values it defines.
    pub outputs: Vec<ValueId>,
}

impl Op {
    /// The values it reads, as often as it reads them.
    pub fn reads(&self) -> impl Iterator<Item = &ValueId> {
        self.args.iter().flatten().flat_map(|arg| match arg {
            Arg::Value(id) => std::slice::from_ref(id),
            Arg::Values(ids) => ids,
            Arg::Literal(_) => &[],
        })
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name
            && self.name == other.name
            && self.args == other.args
            && self.outputs == other.outputs
    }
}

/// What a parameter is bound to.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// One value.
    Value(ValueId),
    /// Several values, for a variadic parameter (`concat`'s `values`).
    Values(Vec<ValueId>),
    /// A literal written in place: the `val` of a `const`, the parameters of `constexpr_*`.
    Literal(Literal),
}

/// A constant with its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Literal {
    /// Static type.
    pub ty: TensorType,
    /// The values.
    pub payload: Payload,
}

/// The values of a constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Row-major little-endian elements, packed as in `weight.bin` (sub-byte types: lowest bits first; bool: one
    /// byte of 0 or 1).
    Bytes(Arc<[u8]>),
    /// A string scalar or a vector of strings.
    Strings(Arc<[String]>),
    /// Offset of a metadata record in the package's `weight.bin`.
    Blob(u64),
}
