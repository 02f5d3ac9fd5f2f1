//! Palettes: weights as small indices into tables of fp16 values.
//!
//! ```text
//! rows of W ─▶ histogram ─▶ best table ─▶ nearest entries ─▶ stream of 4, 6 or 8 bits
//!              of a group    k-means        indices
//! ```
//! A group is some consecutive rows that share a table. Groups know nothing of each other, so they are worked on in
//! parallel and come out the same whatever the number of threads. Where it is known what a matrix reads, its groups
//! are made in [`batch`]es, to the least error of what it gives instead of the least error of its weights.

mod batch;
mod calibrated;
mod drift;
mod format;
mod group;
mod histogram;
mod kmeans;
mod lanes;
mod matrix;
mod pack;
mod parallel;
mod sensitivity;

pub(crate) use drift::Drift;
pub(crate) use format::PaletteFormat;
pub use format::WeightPrecision;
pub(crate) use matrix::{Matrix, Palettized, palettize};
pub(crate) use parallel::on_all_cores;
pub(crate) use sensitivity::Sensitivity;
