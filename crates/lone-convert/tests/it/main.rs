//! Whole conversions of the repository's models.

#![cfg(test)]

mod conformance;
mod golden;
mod refusals;
mod structure;
mod support;
