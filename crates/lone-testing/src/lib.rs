//! Support for tests of other crates; nothing here is part of the program.

#![forbid(unsafe_code)]

pub mod python;
