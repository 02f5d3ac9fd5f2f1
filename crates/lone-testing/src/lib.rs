//! Test support: one suite of operations that every backend runs, and how near is near enough.
//!
//! ```text
//! let report = run_suite(&Interpreter::<Reference>::new(), &Tolerances::REFERENCE);
//! assert!(report.failures.is_empty(), "{report}");
//! ```
//! Expected values come from hand calculation or from the few lines of f64 loops in [`oracle`], never from a
//! backend. Each case travels through a package on disk. Nothing here is part of the program.

#![forbid(unsafe_code)]

mod author;
mod cases;
pub mod oracle;
pub mod python;
mod schema;
mod suite;
mod tensor;
mod tolerance;

pub use author::{Author, OpCase};
pub use cases::op_cases;
pub use schema::validates;
pub use suite::{Failure, Report, run_case, run_suite};
pub use tensor::Tensor;
pub use tolerance::{Kind, Tolerance, Tolerances};
