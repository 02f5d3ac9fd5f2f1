//! The Core ML backend: ML Programs on the Neural Engine, the GPU or the CPU of a Mac.
//!
//! ```text
//! CoremlBackend ── CompileCache     packages become .mlmodelc directories, once, at a path that stays
//!      └─ CoremlModel ── Bound      one Core ML model a function, loaded when it is first needed
//!              └─ Framework         what only macOS can do: compile, load, make arrays, predict, plan
//! ```
//! All decisions are made in plain Rust above [`Framework`] and tested anywhere, on a framework played by lone's CPU
//! engine. Below it lies [`System`]: calls into Core ML on macOS, and nothing at all elsewhere.

#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "Core ML is Objective-C: every call into it is unsafe")]
mod apple;
mod backend;
mod binding;
mod cache;
#[cfg(not(target_os = "macos"))]
mod elsewhere;
mod error;
#[cfg(test)]
mod fake;
mod fault;
mod fingerprint;
mod framework;
mod in_place;
mod keep;
mod model;
mod placement;
#[cfg(any(target_os = "macos", test))]
mod relocation;
#[cfg(any(target_os = "macos", test))]
mod storage;
mod strided;

#[cfg(target_os = "macos")]
pub use apple::System;
pub use backend::{CoremlBackend, CoremlOptions};
#[cfg(not(target_os = "macos"))]
pub use elsewhere::System;
pub use error::{CoremlError, Unavailable};
pub use fault::Fault;
pub use framework::{Array, ComputeUnits, Framework, Input, Predict, Selection, Slot};
pub use placement::{Device, FunctionPlacement, PlacedOp};

#[cfg(test)]
mod tests;
