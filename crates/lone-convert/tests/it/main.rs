//! Whole conversions of the repository's models.

#![cfg(test)]

mod structure;
mod support;
