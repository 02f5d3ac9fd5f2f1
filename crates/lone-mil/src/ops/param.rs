//! Parameters of operations and the domains of values they take.

use crate::DType::{
    self, BF16, Bool, F16, F32, F64, I4, I8, I16, I32, I64, String, U1, U2, U3, U4, U6, U8, U16, U32, U64,
};

/// One parameter of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The MIL name.
    pub name: &'static str,
    /// Which values it takes.
    pub domain: Domain,
    /// Whether it must be given, and what its absence means.
    pub presence: Presence,
    /// Must be known when the program is compiled: a `const`, or the result of a `constexpr_*`.
    pub constant: bool,
    /// Takes several values.
    pub variadic: bool,
    /// Must have the element type of the parameter of this name.
    pub like: Option<&'static str>,
}

/// A set of values: element types, and a rank where it is fixed.
#[derive(Debug, Clone, Copy)]
pub struct Domain {
    /// How messages call it.
    pub name: &'static str,
    /// The element types.
    pub dtypes: &'static [DType],
    /// The rank, if only one will do.
    pub rank: Option<usize>,
    /// The value is a state, not a tensor.
    pub state: bool,
}

/// Whether a parameter must be given.
#[derive(Debug, Clone, Copy)]
pub enum Presence {
    /// It must.
    Required,
    /// It may be left out, and that means something of its own.
    Optional,
    /// Left out, it has this value. Written programs always give it: Apple's compiler demands several of them.
    Default(Fallback),
}

/// The value of a parameter that is left out.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the variants are the types")]
pub enum Fallback {
    Int(i32),
    Bool(bool),
    Str(&'static str),
    /// A scalar with the element type of the parameter it is like.
    Float(f32),
    /// An int32 vector of `value`, `per_axis` of them for each spatial axis of `x`, whose first two axes are not.
    Spatial {
        value: i32,
        per_axis: usize,
    },
}

impl Param {
    /// A required parameter of any constness.
    pub(super) const fn new(name: &'static str, domain: Domain) -> Self {
        Param { name, domain, presence: Presence::Required, constant: false, variadic: false, like: None }
    }

    /// A parameter that must be known at compile time.
    pub(super) const fn constant(name: &'static str, domain: Domain) -> Self {
        Param { constant: true, ..Param::new(name, domain) }
    }

    pub(super) const fn optional(self) -> Self {
        Param { presence: Presence::Optional, ..self }
    }

    pub(super) const fn or(self, fallback: Fallback) -> Self {
        Param { presence: Presence::Default(fallback), ..self }
    }

    pub(super) const fn like(self, other: &'static str) -> Self {
        Param { like: Some(other), ..self }
    }

    pub(super) const fn variadic(self) -> Self {
        Param { variadic: true, ..self }
    }
}

const EVERY_DTYPE: [DType; 20] =
    [Bool, String, F16, F32, F64, BF16, I4, I8, I16, I32, I64, U1, U2, U3, U4, U6, U8, U16, U32, U64];

const fn domain(name: &'static str, dtypes: &'static [DType], rank: Option<usize>) -> Domain {
    Domain { name, dtypes, rank, state: false }
}

pub(super) const FLOAT: Domain = domain("fp16 or fp32 tensor", &[F16, F32], None);
pub(super) const FLOAT_SCALAR: Domain = domain("fp16 or fp32 scalar", &[F16, F32], Some(0));
pub(super) const FLOAT_VECTOR: Domain = domain("fp16 or fp32 vector", &[F16, F32], Some(1));
pub(super) const NUMBER: Domain = domain("fp16, fp32 or int32 tensor", &[F16, F32, I32], None);
pub(super) const MASK: Domain = domain("bool, fp16 or fp32 tensor", &[Bool, F16, F32], None);
pub(super) const TRUTH: Domain = domain("bool tensor", &[Bool], None);
pub(super) const TENSOR: Domain =
    domain("tensor of numbers or bools", &[F16, F32, I32, I16, U16, I8, U8, Bool], None);
pub(super) const LITERAL: Domain = domain("literal", &EVERY_DTYPE, None);
pub(super) const PALETTE_INDICES: Domain =
    domain("uint1, uint2, uint3, uint4, uint6 or uint8 tensor", &[U1, U2, U3, U4, U6, U8], None);
pub(super) const PALETTE: Domain = domain("fp16, fp32, int8 or uint8 tensor", &[F16, F32, I8, U8], None);
pub(super) const QUANTIZED: Domain =
    domain("int4, uint4, int8, uint8, fp16 or fp32 tensor", &[I4, U4, I8, U8, F16, F32], None);
pub(super) const BYTES: Domain = domain("int8 or uint8 tensor", &[I8, U8], None);
pub(super) const BYTE_STREAM: Domain = domain("uint8 vector", &[U8], Some(1));
pub(super) const INDICES: Domain =
    domain("int32, int16, uint16, int8 or uint8 tensor", &[I32, I16, U16, I8, U8], None);
pub(super) const INT: Domain = domain("int32 scalar", &[I32], Some(0));
pub(super) const INTS: Domain = domain("int32 vector", &[I32], Some(1));
pub(super) const UINTS: Domain = domain("uint32 vector", &[U32], Some(1));
pub(super) const BOOL: Domain = domain("bool scalar", &[Bool], Some(0));
pub(super) const BOOLS: Domain = domain("bool vector", &[Bool], Some(1));
pub(super) const STR: Domain = domain("string scalar", &[String], Some(0));
pub(super) const STATE: Domain = Domain { name: "fp16 state", dtypes: &[F16], rank: None, state: true };
