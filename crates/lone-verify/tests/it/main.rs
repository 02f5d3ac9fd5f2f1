//! The two small trained models, converted and run, against their checkpoints and transformers' records.

#![cfg(test)]

mod comparison;
mod exam;
mod ranges;
mod support;
