//! The model as graphs: each module loads its weights once and writes its operations into every function.
//!
//! Modules read in the order of the paper: [`layer`] on top, what it is made of below it. Whatever a measurement on
//! the Neural Engine could overturn stands in a function of its own.

pub(crate) mod attention;
pub(crate) mod feed_forward;
pub(crate) mod gates;
pub(crate) mod inputs;
pub(crate) mod layer;
pub(crate) mod linear;
pub(crate) mod norm;
pub(crate) mod rotary;
pub(crate) mod segments;
pub(crate) mod short_conv;
#[cfg(test)]
pub(crate) mod trial;

use lone_mil::{BuildError, ValueId};

/// One value, or why it could not be built.
pub(crate) type Built = Result<ValueId, BuildError>;

/// Axes of the (N,C,H,W) that every tensor is.
const CHANNEL_AXIS: usize = 1;
const HEIGHT_AXIS: usize = 2;

/// Swaps the last two axes of a tensor of rank 4.
const SWAP_LAST: [i32; 4] = [0, 1, 3, 2];

/// A dimension as operations take it.
fn dim(size: usize) -> i32 {
    i32::try_from(size).expect("a dimension of a graph fits 31 bits")
}
