//! MIL messages: the program, its operations, types and values.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Program {
    #[prost(int64, tag = "1")]
    pub(crate) version: i64,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) functions: BTreeMap<String, Function>,
    #[prost(string, tag = "3")]
    pub(crate) doc_string: String,
    /// `buildInfo`, a dictionary of tool versions, when coremltools wrote the program.
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) attributes: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Function {
    #[prost(message, repeated, tag = "1")]
    pub(crate) inputs: Vec<NamedValueType>,
    #[prost(string, tag = "2")]
    pub(crate) opset: String,
    /// The body, by opset; the one under `opset` is the one that counts.
    #[prost(btree_map = "string, message", tag = "3")]
    pub(crate) block_specializations: BTreeMap<String, Block>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) attributes: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Block {
    #[prost(message, repeated, tag = "1")]
    pub(crate) inputs: Vec<NamedValueType>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) outputs: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) operations: Vec<Operation>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) attributes: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Operation {
    #[prost(string, tag = "1")]
    pub(crate) r#type: String,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) inputs: BTreeMap<String, Argument>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) outputs: Vec<NamedValueType>,
    /// Bodies of control flow.
    #[prost(message, repeated, tag = "4")]
    pub(crate) blocks: Vec<Block>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub(crate) attributes: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Argument {
    #[prost(message, repeated, tag = "1")]
    pub(crate) arguments: Vec<Binding>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Binding {
    #[prost(oneof = "BindingKind", tags = "1, 2")]
    pub(crate) kind: Option<BindingKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum BindingKind {
    #[prost(string, tag = "1")]
    Name(String),
    #[prost(message, tag = "2")]
    Value(Value),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedValueType {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<ValueType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(oneof = "TypeKind", tags = "1, 2, 3, 4, 5")]
    pub(crate) kind: Option<TypeKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum TypeKind {
    #[prost(message, tag = "1")]
    Tensor(TensorType),
    #[prost(message, boxed, tag = "2")]
    List(Box<ListType>),
    #[prost(message, tag = "3")]
    Tuple(TupleType),
    #[prost(message, boxed, tag = "4")]
    Dictionary(Box<DictionaryType>),
    #[prost(message, boxed, tag = "5")]
    State(Box<StateType>),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorType {
    /// A `DataType`, numbered as in [`crate::DType::proto_code`].
    #[prost(int32, tag = "1")]
    pub(crate) data_type: i32,
    /// Negative: variadic.
    #[prost(int64, tag = "2")]
    pub(crate) rank: i64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) dimensions: Vec<Dimension>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) attributes: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) r#type: Option<Box<ValueType>>,
    #[prost(message, optional, tag = "2")]
    pub(crate) length: Option<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TupleType {
    #[prost(message, repeated, tag = "1")]
    pub(crate) types: Vec<ValueType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DictionaryType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) key_type: Option<Box<ValueType>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) value_type: Option<Box<ValueType>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StateType {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) wrapped_type: Option<Box<ValueType>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Dimension {
    #[prost(oneof = "DimensionKind", tags = "1, 2")]
    pub(crate) kind: Option<DimensionKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum DimensionKind {
    #[prost(message, tag = "1")]
    Constant(ConstantDimension),
    #[prost(message, tag = "2")]
    Unknown(UnknownDimension),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConstantDimension {
    #[prost(uint64, tag = "1")]
    pub(crate) size: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UnknownDimension {
    #[prost(bool, tag = "1")]
    pub(crate) variadic: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(string, tag = "1")]
    pub(crate) doc_string: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<ValueType>,
    #[prost(oneof = "ValueKind", tags = "3, 5")]
    pub(crate) kind: Option<ValueKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ValueKind {
    #[prost(message, tag = "3")]
    Immediate(ImmediateValue),
    #[prost(message, tag = "5")]
    BlobFile(BlobFileValue),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImmediateValue {
    #[prost(oneof = "ImmediateKind", tags = "1, 2, 3, 4")]
    pub(crate) kind: Option<ImmediateKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ImmediateKind {
    #[prost(message, tag = "1")]
    Tensor(TensorValue),
    #[prost(message, tag = "2")]
    Tuple(Values),
    #[prost(message, tag = "3")]
    List(Values),
    #[prost(message, tag = "4")]
    Dictionary(DictionaryValue),
}

/// A tuple's or a list's values.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Values {
    #[prost(message, repeated, tag = "1")]
    pub(crate) values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DictionaryValue {
    #[prost(message, repeated, tag = "1")]
    pub(crate) values: Vec<KeyValuePair>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValuePair {
    #[prost(message, optional, tag = "1")]
    pub(crate) key: Option<Value>,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BlobFileValue {
    #[prost(string, tag = "1")]
    pub(crate) file_name: String,
    /// Offset of the blob's metadata record.
    #[prost(uint64, tag = "2")]
    pub(crate) offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorValue {
    #[prost(oneof = "Elements", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) elements: Option<Elements>,
}

/// The member of a `TensorValue` that is set; which one it must be depends on the element type.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Elements {
    #[prost(message, tag = "1")]
    Floats(Floats),
    #[prost(message, tag = "2")]
    Ints(Ints),
    #[prost(message, tag = "3")]
    Bools(Bools),
    #[prost(message, tag = "4")]
    Strings(Strings),
    #[prost(message, tag = "5")]
    LongInts(LongInts),
    #[prost(message, tag = "6")]
    Doubles(Doubles),
    #[prost(message, tag = "7")]
    Bytes(Bytes),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Floats {
    #[prost(float, repeated, tag = "1")]
    pub(crate) values: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ints {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) values: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub(crate) values: Vec<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Strings {
    #[prost(string, repeated, tag = "1")]
    pub(crate) values: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LongInts {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Doubles {
    #[prost(double, repeated, tag = "1")]
    pub(crate) values: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Bytes {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) values: Vec<u8>,
}
