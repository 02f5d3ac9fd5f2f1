//! Runs ML Programs on the CPU, near memory bandwidth.
//!
//! [`CpuBackend`] compiles each function of a package once into a [`Plan`]: steps over one arena, weights used
//! where they are mapped, caches read where they are passed in. Running a plan allocates nothing but room that is kept for
//! the next run, unless an operation has no step of its own.

mod arena;
pub mod arithmetic;
pub mod backend;
pub mod bandwidth;
mod compile;
pub mod cores;
mod int16;
pub mod isa;
pub mod kernels;
pub mod model;
mod pages;
pub mod plan;
pub mod pool;
mod profile;
mod steps;
#[cfg(test)]
mod testing;
mod twelve_bits;

pub use backend::{CpuBackend, CpuOptions};
pub use isa::Isa;
pub use kernels::Kernels;
pub use model::CpuModel;
pub use pages::Pages;
pub use plan::Plan;
pub use pool::Pool;
