//! Palettes: weights as small indices into tables of fp16 values.

mod histogram;
mod kmeans;

pub use histogram::Histogram;
pub use kmeans::{Palette, optimal_palette};
