//! Whole conversions of the repository's models.

mod structure;
mod support;
