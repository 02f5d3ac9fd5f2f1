//! Whole runs of the program: what was typed, what came out, how it ended.

#![expect(unreachable_pub, reason = "nothing is exported from a test")]
#![expect(clippy::unwrap_used, reason = "what a test's own scenery cannot do fails the test")]

mod bad_input;
mod bench;
mod chat;
mod checkpoint;
mod convert;
mod doctor;
mod energy;
mod eval;
mod fake_hub;
mod fetch;
mod inspect;
mod machine;
mod run;
mod serve;
#[cfg(unix)]
mod terminal;
mod usage;
mod verify;
