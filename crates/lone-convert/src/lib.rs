//! Checkpoint in, bundle out: the model graphs, the precision rules, and weights streamed to disk.
//!
//! ```text
//! Checkpoint ─▶ survey ─▶ plan ─────────────▶ write ────────────▶ rename
//!               ranges,   programs, blobs,    blocks of rows      a whole bundle
//!               hash      sizes, ports        into a sibling      or none
//! ```
//! Everything that can be refused is refused before the first byte is written. `docs/graphs.md` draws the graphs.

#![forbid(unsafe_code)]

mod auto;
mod calibrate;
mod chunk;
mod convert;
mod error;
mod extents;
mod facts;
mod function;
mod head;
mod model;
mod note;
mod options;
mod package;
mod palette;
pub mod partial;
mod plan;
mod precision;
mod progress;
mod session;
mod space;
mod staging;
mod stream;
mod survey;
mod weights;
mod workers;
mod write;

pub use calibrate::Calibration;
pub use convert::{Conversion, convert};
pub use error::ConvertError;
pub use note::Note;
pub use options::ConvertOptions;
pub use palette::WeightPrecision;
pub use progress::{Phase, Progress};
pub use staging::check_target;
