//! What development needs and users do not: checkpoints of real dimensions without real weights, and the table of
//! what the precision rules buy.

#![forbid(unsafe_code)]

pub mod ane_table;
pub mod fake_checkpoint;
mod split_mix;
