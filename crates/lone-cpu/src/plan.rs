//! A compiled function: the steps that run it, and what it takes and gives.

use std::fmt;

use lone_mil::Signature;

use crate::kernels::VisibleKeys;
use crate::steps::{Step, Weight};

/// Steps over one arena, in the order they run.
///
/// Prints as text, one line a step; a span is `[first slot+slots]`.
pub struct Plan {
    pub(crate) function: String,
    pub(crate) signature: Signature,
    pub(crate) steps: Vec<Step>,
    /// What each distinct mask leaves visible, while the function runs.
    pub(crate) visible: Vec<VisibleKeys>,
    /// Where the arena must end.
    pub(crate) slots: usize,
}

impl Plan {
    /// The kinds of its steps, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(Step::name)
    }

    /// The weights of its linear layers.
    pub(crate) fn weights(&mut self) -> impl Iterator<Item = &mut Weight> {
        let layers = self.steps.iter_mut().flat_map(|step| match step {
            Step::Projection(projection) => projection.layers.as_mut_slice(),
            _ => &mut [],
        });
        layers.flat_map(|layer| &mut layer.parts).map(|part| &mut part.weight)
    }

    /// What it takes and gives.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} steps, {} slots", self.function, self.steps.len(), self.slots)?;
        for (side, ports) in [("in", &self.signature.inputs), ("out", &self.signature.outputs)] {
            for (number, port) in ports.iter().enumerate() {
                writeln!(f, "{side}{number} {}: {}", port.name, port.ty)?;
            }
        }
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}
