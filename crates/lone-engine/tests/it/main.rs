//! The engine with real models: converted, and run on the CPU.

#![cfg(test)]

mod answers;
mod contexts;
mod dialogue;
mod speculation;
mod support;
