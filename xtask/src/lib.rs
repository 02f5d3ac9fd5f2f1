//! What development needs and users do not: checkpoints of real dimensions without real weights, the table of what
//! the precision rules buy, measurements, and a Homebrew formula.

#![forbid(unsafe_code)]

pub mod ane_table;
pub mod bench_peers;
pub mod convert_time;
pub mod fake_checkpoint;
pub mod formula;
pub mod palette_table;
pub mod speculation;
mod split_mix;
