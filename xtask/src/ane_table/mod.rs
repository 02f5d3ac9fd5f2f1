//! The precision table of the program lone replaces, from the simulated Neural Engine.
//!
//! Each row is one rule: the same computation written without it and with it, as ML Programs over the same synthetic
//! tensors, both run on the simulator and held against f64. Beside each cosine stands the one that was measured on an
//! M1. What the tensors are is part of the row; they are the same on every machine.

mod calibration;
mod program;
mod rules;
mod tensors;

use std::fmt;

use lone_anesim::Faults;

pub use calibration::Calibration;

/// One rule.
#[derive(Debug, Clone)]
pub struct Row {
    /// The computation.
    pub name: &'static str,
    /// The distribution of its tensors.
    pub tensors: &'static str,
    /// As it is written without the rule.
    pub broken: Form,
    /// As it is written with the rule.
    pub restored: Form,
    /// What breaks it.
    pub fault: &'static str,
    /// The cosine of the broken form on an engine that has every fault but that one.
    pub without_fault: f64,
}

/// One way to write a computation.
#[derive(Debug, Clone)]
pub struct Form {
    /// How it is written.
    pub name: &'static str,
    /// Cosine of the simulated M1's result with f64's.
    pub cosine: f64,
    /// Cosine that was measured on an M1, with the weights and activations of LFM3-1.7B.
    pub measured: f64,
}

/// All rows, computed.
///
/// # Errors
/// None that is not a fault of the programs or of the simulator.
pub fn rows() -> anyhow::Result<Vec<Row>> {
    rules::all().iter().map(row).collect()
}

fn row(rule: &rules::Rule) -> anyhow::Result<Row> {
    let case = (rule.case)();
    let cosine = |form: &rules::Form, faults| -> anyhow::Result<f64> {
        Ok(cosine(&program::run(&case, form.build, faults)?, &case.exact))
    };
    let form = |form: &rules::Form| -> anyhow::Result<Form> {
        Ok(Form { name: form.name, cosine: cosine(form, Faults::M1)?, measured: form.measured })
    };
    Ok(Row {
        name: rule.name,
        tensors: rule.tensors,
        broken: form(&rule.broken)?,
        restored: form(&rule.restored)?,
        fault: rule.fault,
        without_fault: cosine(&rule.broken, rule.without_fault)?,
    })
}

/// Cosine of two vectors.
fn cosine(x: &[f64], y: &[f64]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    dot(x, y) / (dot(x, x) * dot(y, y)).sqrt()
}

/// The rows and the calibration as Markdown.
#[derive(Debug, Clone)]
pub struct Report {
    /// The rules.
    pub rows: Vec<Row>,
    /// Where the assumption behind `wide_reduction` comes from.
    pub calibration: Calibration,
}

impl Report {
    /// Computes all of it.
    ///
    /// # Errors
    /// As [`rows`].
    pub fn compute() -> anyhow::Result<Self> {
        Ok(Report { rows: rows()?, calibration: Calibration::compute() })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| computation | form | simulated M1 | measured on an M1 | simulated without the fault |"
        )?;
        writeln!(f, "|---|---|---|---|---|")?;
        for Row { name, broken, restored, fault, without_fault, .. } in &self.rows {
            let Form { name: form, cosine, measured } = broken;
            writeln!(f, "| {name} | {form} | {cosine:.5} | {measured} | {without_fault:.7} (`{fault}`) |")?;
            let Form { name: form, cosine, measured } = restored;
            writeln!(f, "| | {form} | {cosine:.8} | {measured} | |")?;
        }
        writeln!(f, "\nTensors, of fp16 values, from seeded generators:\n")?;
        for Row { name, tensors, .. } in &self.rows {
            writeln!(f, "- {name}: {tensors}")?;
        }
        write!(f, "\n{}", self.calibration)
    }
}
