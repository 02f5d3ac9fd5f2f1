//! The protobuf messages of a `model.mlmodel`, as far as an ML Program needs them.
//!
//! [`model`] is the shell that Core ML has around every kind of model; [`mil`] is the program inside it. Tags are
//! those of Apple's `Model.proto`, `FeatureTypes.proto` and `MIL.proto`. Maps are ordered, so that equal
//! programs are equal bytes. These types stay inside the crate: `package` turns them into a checked
//! [`Program`](crate::Program) and back.

pub(crate) mod mil;
pub(crate) mod model;

#[cfg(test)]
mod vectors;
