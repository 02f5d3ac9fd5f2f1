//! The CPU backend from outside: operations, fusions, plans, faults, whole models.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod fusions;
mod graphs;
mod keep;
mod models;
mod palettes;
mod plans;
mod suite;
