//! A package: its functions, and how often each operation occurs in them.

use std::collections::BTreeMap;
use std::path::Path;

use lone_mil::package::Package;
use lone_mil::{Function, ValueId, text};
use serde::Serialize;

use super::Report;
use crate::failure::Failure;
use crate::quantity::{Bytes, counted};
use crate::ui::Ui;

/// What a package holds.
#[derive(Debug, Serialize)]
pub(super) struct PackageReport {
    pub(super) package: String,
    /// Of `weight.bin`.
    pub(super) weight_bytes: u64,
    pub(super) functions: Vec<FunctionReport>,
}

/// What a function takes, gives and does.
#[derive(Debug, Serialize)]
pub(super) struct FunctionReport {
    pub(super) name: String,
    pub(super) opset: String,
    pub(super) inputs: Vec<PortReport>,
    pub(super) outputs: Vec<PortReport>,
    pub(super) ops: OpCounts,
}

/// A named tensor, such as `hidden: fp16 (1, 64, 1, 1)`.
#[derive(Debug, Serialize)]
pub(super) struct PortReport {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
}

/// Operations by name; constants are not counted, they compute nothing.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct OpCounts(BTreeMap<&'static str, usize>);

impl PackageReport {
    /// Opens the package, which checks all of it.
    pub(super) fn of(dir: &Path) -> Result<Self, Failure> {
        let package = Package::open(dir)?;
        Ok(PackageReport {
            package: dir.display().to_string(),
            weight_bytes: std::fs::metadata(package.blobs.path()).map_or(0, |file| file.len()),
            functions: package.program.functions.iter().map(FunctionReport::of).collect(),
        })
    }
}

impl FunctionReport {
    fn of(function: &Function) -> Self {
        let ports = |ids: &[ValueId]| {
            let value = |&id: &ValueId| {
                let value = function.value(id);
                PortReport { name: value.name.clone(), ty: value.ty.to_string() }
            };
            ids.iter().map(value).collect()
        };
        FunctionReport {
            name: function.name.clone(),
            opset: function.opset.clone(),
            inputs: ports(&function.inputs),
            outputs: ports(&function.outputs),
            ops: OpCounts::of(function),
        }
    }
}

impl OpCounts {
    fn of(function: &Function) -> Self {
        let mut counts = BTreeMap::new();
        for op in function.ops.iter().filter(|op| op.spec.name != "const") {
            *counts.entry(op.spec.name).or_default() += 1;
        }
        OpCounts(counts)
    }

    /// Most frequent first, as `24 conv, 12 mul`.
    pub(super) fn line(&self) -> String {
        let mut counts: Vec<_> = self.0.iter().collect();
        counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(*count), *name));
        let words: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        words.join(", ")
    }
}

impl Report for PackageReport {
    fn print(&self, ui: &Ui) -> Result<(), Failure> {
        let functions = counted(self.functions.len(), "function");
        ui.heading(format_args!("{}: {functions}, {} of weights", self.package, Bytes(self.weight_bytes)))?;
        for function in &self.functions {
            ui.heading(format_args!("\n{} ({})", function.name, function.opset))?;
            for (side, ports) in [("in ", &function.inputs), ("out", &function.outputs)] {
                for port in ports {
                    ui.line(format_args!("  {side}  {}: {}", port.name, port.ty))?;
                }
            }
            ui.line(format_args!("  ops  {}", function.ops.line()))?;
        }
        Ok(())
    }
}

/// Prints the program itself.
pub(super) fn print_text(dir: &Path, ui: &Ui) -> Result<(), Failure> {
    ui.write(&text::print(&Package::open(dir)?.program))
}
