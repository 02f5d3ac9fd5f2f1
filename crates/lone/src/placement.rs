//! Where Core ML means to run a bundle: asked once, kept in bundle.json, and a warning where much leaves the Neural Engine.

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
const ENOUGH: f64 = 0.95;

/// Asks Core ML, where there is one, and keeps the answer in the bundle in `dir`. If Core ML has no answer, that is said and
/// the bundle is as good as before.
///
/// # Errors
/// [`Failure::Interrupted`] after Ctrl-C.
pub(crate) fn record(dir: &Path, bundle: &mut Bundle, context: &Context) -> Result<(), Failure> {
    if !cfg!(target_os = "macos") {
        return Ok(());
    }
    match plan(dir, bundle, context) {
        Err(Failure::User(error)) => {
            context.ui.warn(format_args!("where operations run is not known: {}", error.message));
            Ok(())
        }
        outcome => outcome,
    }
}

fn plan(dir: &Path, bundle: &mut Bundle, context: &Context) -> Result<(), Failure> {
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
    drop(progress);
    let (system, compute_units) = (Machine::this().line(), units.name().into());
    bundle.placement = Some(Placement { system, compute_units, functions });
    Ok(bundle.save(dir)?)
}

fn of_function(package: &str, planned: lone_coreml::FunctionPlacement) -> FunctionPlacement {
    let operations = planned.ops.len();
    let left = planned.ops.into_iter().filter(|op| op.device != Device::NeuralEngine);
    let elsewhere: Vec<PlacedOp> = left
        .map(|op| PlacedOp { name: op.name, operator: op.operator, device: op.device.name().into() })
        .collect();
    FunctionPlacement {
        package: package.into(),
        function: planned.function,
        neural_engine: operations - elsewhere.len(),
        elsewhere,
    }
}

/// Says so if `bundle`, which is about to run on `backend`, is known to run elsewhere than on the Neural Engine in good part.
pub(crate) fn warn(bundle: &Bundle, backend: &str, units: UnitsArgs, ui: &Ui) {
    let wants_engine = backend == "coreml" && backend::units(units) == ComputeUnits::CpuAndNeuralEngine;
    if let Some(warning) = warning(bundle).filter(|_| wants_engine) {
        ui.warn(warning);
    }
}

fn warning(bundle: &Bundle) -> Option<String> {
    let placement = bundle.placement.as_ref()?;
    let share = placement.neural_engine_share();
    let name = &bundle.model.name;
    (share < ENOUGH).then(|| {
        format!(
            "only {:.1} % of the operations of {name} run on the Neural Engine; `lone inspect --bundle DIR` names the others",
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

    #[test]
    fn operations_that_leave_the_engine_are_named_and_the_others_counted() {
        let ops = vec![op("a", Device::NeuralEngine), op("b", Device::Gpu), op("c", Device::Cpu)];
        let planned = lone_coreml::FunctionPlacement { function: "decode".into(), ops };
        let placement = of_function("chunk_00.mlpackage", planned);
        assert_eq!((placement.neural_engine, placement.operations()), (1, 3));
        let left: Vec<_> = placement.elsewhere.iter().map(|op| (&op.name[..], &op.device[..])).collect();
        assert_eq!(left, [("b", "gpu"), ("c", "cpu")]);
    }
}
