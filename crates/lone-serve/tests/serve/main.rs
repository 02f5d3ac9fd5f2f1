//! The server as its clients see it: a small real model behind a real socket.

#![cfg(test)]
#![expect(unreachable_pub, reason = "nothing is exported from a test")]

mod access;
mod chat;
mod completions;
mod constrained;
mod fields;
mod guessing;
mod host;
mod load;
mod openai_client;
mod others;
mod responses;
