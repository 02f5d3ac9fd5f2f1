//! What development needs and users do not: checkpoints of real dimensions without real weights.

#![forbid(unsafe_code)]

pub mod fake_checkpoint;
