//! Palettes: weights as small indices into tables of fp16 values.
//!
//! ```text
//! rows of W ─▶ histogram ─▶ best table ─▶ nearest entries ─▶ stream of 4, 6 or 8 bits
//!              of a group    k-means        indices
//! ```
//! A group is some consecutive rows that share a table. Groups know nothing of each other, so they are worked on in
//! parallel and come out the same whatever the number of threads.

mod format;
mod group;
mod histogram;
mod kmeans;
mod matrix;
mod pack;

pub(crate) use format::PaletteFormat;
pub use format::WeightPrecision;
pub(crate) use matrix::{Matrix, palettize};
