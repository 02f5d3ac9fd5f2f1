//! Where Core ML means to run a bundle's operations, as the Mac that was asked said.

use serde::{Deserialize, Serialize};

/// The plans of all functions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The system that was asked, such as `Apple M1, macOS 15.1`.
    pub system: String,
    /// The processors that were allowed, such as `cpu_and_ne`.
    pub compute_units: String,
    /// One entry a function, in the bundle's order.
    pub functions: Vec<FunctionPlacement>,
}

/// The plan of one function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionPlacement {
    /// The package it is in.
    pub package: String,
    /// Its name.
    pub function: String,
    /// Operations on the Neural Engine; constants, which run nowhere, are not counted.
    pub neural_engine: usize,
    /// The operations that run elsewhere, or are not known to run there, in order.
    pub elsewhere: Vec<PlacedOp>,
}

/// An operation that does not run on the Neural Engine, or is not known to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlacedOp {
    /// Name of its first result.
    pub name: String,
    /// What it does, such as `conv`.
    pub operator: String,
    /// Where it runs: `cpu`, `gpu` or [`PlacedOp::UNKNOWN`].
    pub device: String,
    /// Its share of the function's cost, 0 to 1, where Core ML estimates one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl PlacedOp {
    /// The device of what Core ML could not determine.
    pub const UNKNOWN: &str = "unknown";
}

impl Placement {
    /// What part of all operations runs on the Neural Engine; `None` if not one operation is known to run anywhere.
    pub fn neural_engine_share(&self) -> Option<f64> {
        share(&self.functions)
    }
}

impl FunctionPlacement {
    /// Operations anywhere.
    pub fn operations(&self) -> usize {
        self.neural_engine.saturating_add(self.elsewhere.len())
    }

    /// What part of them runs on the Neural Engine; `None` if not one is known to run anywhere.
    pub fn neural_engine_share(&self) -> Option<f64> {
        share(std::slice::from_ref(self))
    }

    fn known(&self) -> usize {
        let known = self.elsewhere.iter().filter(|op| op.device != PlacedOp::UNKNOWN).count();
        self.neural_engine.saturating_add(known)
    }
}

/// Operations that may be anywhere are not on the Neural Engine.
fn share(functions: &[FunctionPlacement]) -> Option<f64> {
    // The numbers come from a file, so they may be any.
    let sum =
        |count: fn(&FunctionPlacement) -> usize| functions.iter().map(count).fold(0, usize::saturating_add);
    let all = sum(FunctionPlacement::operations);
    (sum(FunctionPlacement::known) > 0).then(|| sum(|function| function.neural_engine) as f64 / all as f64)
}
