//! lone-cpu: runs ML Programs on the CPU, near memory bandwidth.

pub mod cores;
pub mod isa;
pub mod kernels;
pub mod pool;
#[cfg(test)]
mod testing;

pub use isa::Isa;
pub use kernels::Kernels;
pub use pool::Pool;
