//! Where Core ML means to run a bundle: how many operations where, and the names of those that leave the Neural Engine.

use std::collections::BTreeMap;

use lone_bundle::{FunctionPlacement, PlacedOp, Placement};

use crate::failure::Failure;
use crate::placement::{Departure, departures};
use crate::quantity::counted;
use crate::ui::Ui;

/// Prints the section.
///
/// # Errors
/// When nobody reads any more.
pub(super) fn print(placement: &Placement, ui: &Ui) -> Result<(), Failure> {
    let Placement { system, compute_units, functions } = placement;
    ui.heading("\nPlacement")?;
    let share = match placement.neural_engine_share() {
        Some(share) => format!("{:.1} % of operations on the Neural Engine", 100.0 * share),
        None => "not known".into(),
    };
    ui.line(format_args!("  {share}, asked of {system} with {compute_units}"))?;
    functions.iter().try_for_each(|function| print_function(function, ui))
}

fn print_function(function: &FunctionPlacement, ui: &Ui) -> Result<(), Failure> {
    let mut devices: BTreeMap<&str, usize> = BTreeMap::new();
    for op in &function.elsewhere {
        *devices.entry(&op.device).or_default() += 1;
    }
    let on = |(device, count)| match device {
        PlacedOp::UNKNOWN => format!(", {count} unknown"),
        device => format!(", {count} on the {device}"),
    };
    let devices: String = devices.into_iter().map(on).collect();
    let engine = counted(function.neural_engine, "operation");
    ui.line(format_args!(
        "  {} {}: {engine} on the Neural Engine{devices}",
        function.package, function.function
    ))?;
    for departure in departures(function) {
        let Departure { device, operator, names, .. } = &departure;
        let cost = match departure.cost() {
            unknown if unknown.is_empty() => unknown,
            cost => format!(", {cost} of the cost"),
        };
        ui.line(format_args!("    {device} {operator}{cost}: {names}"))?;
    }
    Ok(())
}
