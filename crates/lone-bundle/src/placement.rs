//! Where Core ML means to run a bundle's operations, as the Mac that was asked said.

use serde::{Deserialize, Serialize};

/// The plans of all functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The system that was asked, such as `Apple M1, macOS 15.1`.
    pub system: String,
    /// The processors that were allowed, such as `cpu_and_ne`.
    pub compute_units: String,
    /// One entry a function, in the bundle's order.
    pub functions: Vec<FunctionPlacement>,
}

/// The plan of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionPlacement {
    /// The package it is in.
    pub package: String,
    /// Its name.
    pub function: String,
    /// Operations on the Neural Engine; constants, which run nowhere, are not counted.
    pub neural_engine: usize,
    /// The operations that run elsewhere, in order.
    pub elsewhere: Vec<PlacedOp>,
}

/// An operation that runs somewhere else than on the Neural Engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedOp {
    /// Name of its first result.
    pub name: String,
    /// What it does, such as `conv`.
    pub operator: String,
    /// Where it runs: `cpu` or `gpu`.
    pub device: String,
}

impl Placement {
    /// What part of all operations runs on the Neural Engine; all of none.
    pub fn neural_engine_share(&self) -> f64 {
        let on_it: usize = self.functions.iter().map(|function| function.neural_engine).sum();
        share(on_it, self.functions.iter().map(FunctionPlacement::operations).sum())
    }
}

impl FunctionPlacement {
    /// Operations anywhere.
    pub fn operations(&self) -> usize {
        self.neural_engine + self.elsewhere.len()
    }

    /// What part of them runs on the Neural Engine; all of none.
    pub fn neural_engine_share(&self) -> f64 {
        share(self.neural_engine, self.operations())
    }
}

fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}
