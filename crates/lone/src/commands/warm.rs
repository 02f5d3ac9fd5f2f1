//! `lone warm`: every function loaded once, one after the other.

use std::time::Instant;

use lone_bundle::Bundle;
use lone_engine::LoadError;
use lone_mil::LoadOptions;
use serde::Serialize;

use super::Context;
use crate::args::WarmArgs;
use crate::backend;
use crate::bundle::BundleSource;
use crate::failure::Failure;
use crate::placement;
use crate::quantity::{Seconds, counted};

/// How long it took, for `--json`.
#[derive(Debug, Serialize)]
struct Report {
    model: String,
    backend: &'static str,
    seconds: f64,
    functions: Vec<FunctionReport>,
}

#[derive(Debug, Serialize)]
struct FunctionReport {
    package: String,
    function: String,
    seconds: f64,
}

/// Loads the model in `args`, and asks Core ML where it runs unless that is known of this machine.
///
/// # Errors
/// As the model and the backend have it; [`Failure::Interrupted`] after Ctrl-C.
pub(crate) fn execute(args: &WarmArgs, context: &Context) -> Result<(), Failure> {
    let source = BundleSource::resolve(&args.source, &args.conversion)?;
    let backend = backend::choose(&args.engine, context)?;
    context.watch_for_interrupts();
    let dir = source.directory(context, |_| Ok(()))?;
    let mut bundle = Bundle::open(&dir)?;
    let all = bundle.graphs.iter().map(|graph| graph.functions.len()).sum();
    let (start, mut functions) = (Instant::now(), Vec::new());
    let mut progress = context.ui.count("loading", "functions", all);
    for graph in &bundle.graphs {
        for function in &graph.functions {
            if context.interrupt.is_raised() {
                return Err(Failure::Interrupted(format!("{} of {all} were loaded", functions.len())));
            }
            let start = Instant::now();
            let (package, function) = (graph.package.clone(), function.name.clone());
            let options = LoadOptions { functions: vec![function.clone()], ..LoadOptions::default() };
            backend
                .load(&dir.join(&package), &options)
                .map_err(|source| LoadError::Backend { package: package.clone(), source })?;
            functions.push(FunctionReport { package, function, seconds: start.elapsed().as_secs_f64() });
            progress.advance(1);
        }
    }
    drop(progress);
    if backend.name() == "coreml" && !placement::is_known_here(&bundle) {
        placement::record(&dir, &mut bundle, context)?;
    }
    placement::warn(&bundle, backend.name(), args.engine.units, &context.ui);
    let seconds = start.elapsed().as_secs_f64();
    let report = Report { model: bundle.model.name, backend: backend.name(), seconds, functions };
    if args.json { context.ui.json(&report) } else { report.print(context) }
}

impl Report {
    fn print(&self, context: &Context) -> Result<(), Failure> {
        for FunctionReport { package, function, seconds } in &self.functions {
            context.ui.line(format_args!("  {package:<20} {function:<24} {}", Seconds(*seconds)))?;
        }
        let functions = counted(self.functions.len(), "function");
        context.ui.line(format_args!(
            "{}: {functions} loaded on {} in {}",
            self.model,
            self.backend,
            Seconds(self.seconds)
        ))
    }
}
