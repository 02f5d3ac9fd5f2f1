//! Programs as text, for people, snapshots and tests of passes.
//!
//! ```text
//! func decode<CoreML8>(x: fp16(1,64,1,8), s: state<fp16(2)>) -> (y) {
//!     w: fp16(128,64,1,1) = const(val = fp16(128,64,1,1) blob 64)
//!     pad: int32(4) = const(val = int32(4) [0, 0, 0, 0])
//!     y: fp16(1,128,1,8) = conv(x = x, weight = w, pad = pad, …)
//!     a: fp16(1,64,1,8), b: fp16(1,64,1,8) = split(x = y, …) [name = "halves"]
//! }
//! ```
//! A literal is a type and then `blob OFFSET`, a number, a quoted string, a list of either in brackets, or for types
//! without a decimal form `bits` and hexadecimal bytes. `[name = …]` stands where an operation is not called after
//! its only result. A program is its default function, then the others. `//` begins a comment.

mod lex;
mod parse;
mod print;

pub use parse::{TextError, parse, parse_function};
pub use print::{print, print_function};

#[cfg(test)]
mod tests;
