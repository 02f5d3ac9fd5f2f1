//! A model of the Neural Engine's arithmetic: the reference interpreter, fed with the engine's numbers.
//!
//! ```text
//! let backend = AneSim::new(Faults::M1);
//! let model = backend.load(package, &LoadOptions::default())?;
//! ```
//! Nothing is fused, every result is rounded to fp16, and each known departure from exact fp16 arithmetic is a switch
//! of [`Faults`]. What no public source has measured is computed exactly. None of it was measured by this project:
//! docs/precision.md says where each figure comes from and which of them are assumptions.

#![forbid(unsafe_code)]

mod ane;
mod backend;
mod faults;
mod grid;
mod mac;
mod table;

pub use ane::Ane;
pub use backend::AneSim;
pub use faults::Faults;
