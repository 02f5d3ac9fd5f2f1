//! Model messages: specification version, description of the features, metadata.
//!
//! Of the kinds of model and of feature there are, only ML Programs, multi-arrays and states are declared;
//! prost skips the others, and a reader sees that what it needs is not there.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

use super::mil::Program;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Model {
    #[prost(int32, tag = "1")]
    pub(crate) specification_version: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) description: Option<ModelDescription>,
    /// One member of a oneof; absent when the model is of another kind.
    #[prost(message, optional, tag = "502")]
    pub(crate) ml_program: Option<Program>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelDescription {
    #[prost(message, repeated, tag = "1")]
    pub(crate) input: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "10")]
    pub(crate) output: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) state: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "20")]
    pub(crate) functions: Vec<FunctionDescription>,
    #[prost(string, tag = "21")]
    pub(crate) default_function_name: String,
    #[prost(message, optional, tag = "100")]
    pub(crate) metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionDescription {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) input: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) output: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) state: Vec<FeatureDescription>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FeatureDescription {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) short_description: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) r#type: Option<FeatureType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metadata {
    #[prost(string, tag = "1")]
    pub(crate) short_description: String,
    #[prost(string, tag = "2")]
    pub(crate) version_string: String,
    #[prost(string, tag = "3")]
    pub(crate) author: String,
    #[prost(string, tag = "4")]
    pub(crate) license: String,
    #[prost(btree_map = "string, string", tag = "100")]
    pub(crate) user_defined: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FeatureType {
    #[prost(oneof = "FeatureKind", tags = "5, 8")]
    pub(crate) kind: Option<FeatureKind>,
    #[prost(bool, tag = "1000")]
    pub(crate) is_optional: bool,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum FeatureKind {
    #[prost(message, tag = "5")]
    MultiArray(ArrayFeatureType),
    #[prost(message, tag = "8")]
    State(StateFeatureType),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StateFeatureType {
    #[prost(message, optional, tag = "1")]
    pub(crate) array_type: Option<ArrayFeatureType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArrayFeatureType {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) shape: Vec<i64>,
    /// An `ArrayDataType`, numbered as `MLMultiArrayDataType`.
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    /// Set when the shape is one of a list.
    #[prost(message, optional, tag = "21")]
    pub(crate) enumerated_shapes: Option<Flexible>,
    /// Set when dimensions have bounds instead of sizes.
    #[prost(message, optional, tag = "31")]
    pub(crate) shape_range: Option<Flexible>,
}

/// That a shape is flexible; how, nobody here needs to know.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Flexible {}
