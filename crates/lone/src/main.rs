//! The `lone` command.
fn main() {}
