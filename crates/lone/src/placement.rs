//! Where Core ML means to run a bundle: asked once, kept in bundle.json, and a warning where much leaves the Neural Engine.

use std::collections::BTreeMap;
use std::path::Path;

use lone_bundle::{Bundle, FunctionPlacement, PlacedOp, Placement};
use lone_coreml::{ComputeUnits, Device};

use crate::args::UnitsArgs;
use crate::backend;
use crate::commands::Context;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::ui::Ui;

/// What part of the operations should be on the Neural Engine.
pub(crate) const ENOUGH: f64 = 0.95;

/// Most names told of one operator in one function; `lone inspect --json` has all.
const MOST_NAMES: usize = 6;

/// Asks Core ML, and keeps the answer in the bundle in `dir`. If Core ML has no answer, or it cannot be kept, that is said and the bundle
/// is as good as before.
///
/// # Errors
/// [`Failure::Interrupted`] after Ctrl-C.
pub(crate) fn record(dir: &Path, bundle: &mut Bundle, context: &Context) -> Result<(), Failure> {
    match ask(dir, bundle, context) {
        Ok(placement) => keep(placement, dir, bundle, &context.ui),
        Err(Failure::User(error)) => {
            context.ui.warn(format_args!("where operations run is not known: {}", error.message));
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Keeps `placement` in `bundle`, and in the file below `dir` if that may be written.
fn keep(placement: Placement, dir: &Path, bundle: &mut Bundle, ui: &Ui) {
    bundle.placement = Some(placement);
    if let Err(error) = bundle.save(dir) {
        ui.warn(format_args!(
            "where operations run cannot be kept in the bundle, and will be asked again: {error}"
        ));
    }
}

/// What Core ML says of the bundle in `dir`, which is not changed.
///
/// # Errors
/// [`Failure::User`] if there is no Core ML or it has no answer, [`Failure::Interrupted`] after Ctrl-C.
pub(crate) fn ask(dir: &Path, bundle: &Bundle, context: &Context) -> Result<Placement, Failure> {
    let units = ComputeUnits::default();
    let backend = backend::coreml(units, context)?;
    let mut progress = context.ui.count("asking Core ML for its plan", "programs", bundle.graphs.len());
    let mut functions = Vec::new();
    for graph in &bundle.graphs {
        if context.interrupt.is_raised() {
            return Err(Failure::Interrupted("the bundle is complete, its placement is not known".into()));
        }
        let planned = backend.placement(&dir.join(&graph.package)).map_err(Failure::user)?;
        functions.extend(planned.into_iter().map(|function| of_function(&graph.package, function)));
        progress.advance(1);
    }
    let (system, compute_units) = (Machine::this().line(), units.name().into());
    Ok(Placement { system, compute_units, functions })
}

fn of_function(package: &str, planned: lone_coreml::FunctionPlacement) -> FunctionPlacement {
    let operations = planned.ops.len();
    let left = planned.ops.into_iter().filter(|op| op.device != Device::NeuralEngine);
    let elsewhere: Vec<PlacedOp> = left
        .map(|op| {
            let device = op.device.name().into();
            PlacedOp { name: op.name, operator: op.operator, device, cost: op.cost }
        })
        .collect();
    FunctionPlacement {
        package: package.into(),
        function: planned.function,
        neural_engine: operations - elsewhere.len(),
        elsewhere,
    }
}

/// Whether the bundle says where it runs on this machine, as it is now.
pub(crate) fn is_known_here(bundle: &Bundle) -> bool {
    bundle.placement.as_ref().is_some_and(|placement| placement.system == Machine::this().line())
}

/// Operations of one kind that leave the Neural Engine together.
pub(crate) struct Departure<'a> {
    pub(crate) device: &'a str,
    pub(crate) operator: &'a str,
    /// The first of them.
    pub(crate) names: String,
    /// Their part of the function's cost, where Core ML estimates that of each.
    cost: Option<f64>,
}

impl Departure<'_> {
    /// The cost as people read it; empty where it is not known.
    pub(crate) fn cost(&self) -> String {
        self.cost.map_or_else(String::new, |cost| format!("{:.1} %", 100.0 * cost))
    }
}

/// What leaves the Neural Engine, by device and operator.
pub(crate) fn departures(function: &FunctionPlacement) -> Vec<Departure<'_>> {
    let mut left: BTreeMap<(&str, &str), Vec<&PlacedOp>> = BTreeMap::new();
    for op in &function.elsewhere {
        left.entry((&op.device, &op.operator)).or_default().push(op);
    }
    let told = |((device, operator), ops): ((_, _), Vec<&PlacedOp>)| {
        let more = ops.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names: Vec<&str> = ops.iter().take(MOST_NAMES).map(|op| &op.name[..]).collect();
        let cost = ops.iter().map(|op| op.cost).sum();
        Departure { device, operator, names: names.join(", ") + &more, cost }
    };
    left.into_iter().map(told).collect()
}

/// Says so if `bundle`, which is about to run on `backend`, runs elsewhere than on the Neural Engine in good part, or nobody knows.
pub(crate) fn warn(bundle: &Bundle, backend: &str, units: UnitsArgs, ui: &Ui) {
    if backend != "coreml" || backend::units(units) != ComputeUnits::CpuAndNeuralEngine {
        return;
    }
    match &bundle.placement {
        Some(placement) if is_known_here(bundle) => {
            if let Some(warning) = warning(&bundle.model.name, placement) {
                ui.warn(warning);
            }
        }
        _ => ui.note(format_args!(
            "which operations of {} run on the Neural Engine of this Mac is not known; `lone warm` asks",
            bundle.model.name
        )),
    }
}

fn warning(model: &str, placement: &Placement) -> Option<String> {
    let Some(share) = placement.neural_engine_share() else {
        return Some(format!("Core ML does not know where the operations of {model} run"));
    };
    (share < ENOUGH).then(|| {
        format!(
            "only {:.1} % of the operations of {model} run on the Neural Engine; `lone inspect --bundle DIR` names the others",
            100.0 * share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str, device: Device) -> lone_coreml::PlacedOp {
        lone_coreml::PlacedOp { name: name.into(), operator: "conv".into(), device, cost: None }
    }

    fn placed(ops: Vec<lone_coreml::PlacedOp>) -> FunctionPlacement {
        let planned = lone_coreml::FunctionPlacement { function: "decode".into(), ops };
        of_function("chunk_00.mlpackage", planned)
    }

    #[test]
    fn operations_that_leave_the_engine_are_named_and_the_others_counted() {
        let function =
            placed(vec![op("a", Device::NeuralEngine), op("b", Device::Gpu), op("c", Device::Unknown)]);
        assert_eq!((function.neural_engine, function.operations()), (1, 3));
        let left: Vec<_> = function.elsewhere.iter().map(|op| (&op.name[..], &op.device[..])).collect();
        assert_eq!(left, [("b", "gpu"), ("c", PlacedOp::UNKNOWN)]);
    }

    #[test]
    fn what_leaves_together_costs_together_or_nobody_knows_what() {
        let costing = |name, cost| lone_coreml::PlacedOp { cost, ..op(name, Device::Cpu) };
        let told = |ops| departures(&placed(ops)).iter().map(Departure::cost).collect::<Vec<_>>();
        assert_eq!(told(vec![costing("a", Some(0.015)), costing("b", Some(0.25))]), ["26.5 %"]);
        assert_eq!(told(vec![costing("a", Some(0.015)), costing("b", None)]), [""]);
    }

    #[test]
    fn what_is_unknown_is_not_on_the_engine_and_a_plan_that_knows_nothing_says_so() {
        let warning = |ops| {
            let (system, compute_units) = (String::new(), String::new());
            warning("m", &Placement { system, compute_units, functions: vec![placed(ops)] })
        };
        let on_it = || op("a", Device::NeuralEngine);
        assert_eq!(warning(vec![on_it()]), None);
        let half = warning(vec![on_it(), op("b", Device::Unknown)]).unwrap();
        assert!(half.starts_with("only 50.0 %"), "{half}");
        for ops in [vec![], vec![op("b", Device::Unknown)]] {
            assert_eq!(warning(ops).unwrap(), "Core ML does not know where the operations of m run");
        }
    }
}
