//! Where Core ML means to run a bundle: how many operations where, and the names of those that leave the Neural Engine.

use std::collections::BTreeMap;

use lone_bundle::{FunctionPlacement, Placement};

use crate::failure::Failure;
use crate::quantity::counted;
use crate::ui::Ui;

/// Most names shown of one operator in one function; `--json` has all.
const MOST_NAMES: usize = 6;

/// Prints the section.
///
/// # Errors
/// When nobody reads any more.
pub(super) fn print(placement: &Placement, ui: &Ui) -> Result<(), Failure> {
    let Placement { system, compute_units, functions } = placement;
    ui.heading("\nPlacement")?;
    let share = 100.0 * placement.neural_engine_share();
    ui.line(format_args!(
        "  {share:.1} % of operations on the Neural Engine, asked of {system} with {compute_units}"
    ))?;
    functions.iter().try_for_each(|function| print_function(function, ui))
}

fn print_function(function: &FunctionPlacement, ui: &Ui) -> Result<(), Failure> {
    let mut devices: BTreeMap<&str, usize> = BTreeMap::new();
    // In the order of operators, each with its names.
    let mut left: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for op in &function.elsewhere {
        *devices.entry(&op.device).or_default() += 1;
        left.entry((&op.device, &op.operator)).or_default().push(&op.name);
    }
    let devices: String =
        devices.iter().map(|(device, count)| format!(", {count} on the {device}")).collect();
    let engine = counted(function.neural_engine, "operation");
    ui.line(format_args!(
        "  {} {}: {engine} on the Neural Engine{devices}",
        function.package, function.function
    ))?;
    for ((device, operator), names) in left {
        let more = names.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = names[..names.len().min(MOST_NAMES)].join(", ");
        ui.line(format_args!("    {device} {operator}: {names}{more}"))?;
    }
    Ok(())
}
