//! Whole conversions of the repository's models.

#![cfg(test)]

mod conformance;
mod golden;
mod palettes;
mod refusals;
mod simulated;
mod source;
mod structure;
mod support;
