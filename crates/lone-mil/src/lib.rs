//! ML Programs, Core ML's program format: build them, check them, write and read them, run them.
//!
//! A [`Program`] is a set of functions over typed tensors. [`ops`] has one row per operation:
//! its parameters, its type rule and its meaning. The [`Backend`] trait is the seam behind which the very
//! same functions run: on the interpreter here, on lone's CPU engine, or on Core ML.
//!
//! This crate knows nothing of language models.

#![deny(unsafe_code)]

pub mod backend;
pub mod blob;
pub mod builder;
pub mod dtype;
mod identifier;
pub mod interpret;
mod literal;
mod mapped;
pub mod ops;
pub mod package;
pub mod program;
mod proto;
pub mod tensor_type;
pub mod text;
pub mod verify;

pub use backend::{
    Backend, BackendError, Keep, LoadOptions, Model, Port, Signature, StepProfile, TensorMut, TensorRef,
};
pub use blob::{BlobError, BlobFile, BlobLayout, BlobRef, BlobSink, BlobWriter};
pub use builder::{BuildError, FunctionBuilder, Given};
pub use dtype::DType;
pub use interpret::{Interpreter, Numerics, Reference};
pub use mapped::Mapped;
pub use program::{Arg, Def, Function, Literal, Op, Payload, Program, Value, ValueId};
pub use tensor_type::{Shape, TensorType, ValueType};
pub use verify::{VerifyError, verify, verify_function};
