//! `lone doctor`: whether lone works on this machine, backend by backend.

mod report;
mod subject;
mod table;
mod trial;

use lone_anesim::{AneSim, Faults};
use lone_bundle::Placement;
use lone_coreml::ComputeUnits;
use lone_cpu::{CpuBackend, CpuOptions};
use lone_energy::EnergyWatch;
use lone_mil::Backend;
use tempfile::TempDir;

use super::{Context, save};
use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::{backend, energy, placement};
use report::Report;
use subject::Subject;
use trial::Trial;

/// More parameters than this are too many for the simulated engine to read a prompt in reasonable time.
const MOST_SIMULATED: u64 = 20_000_000;

/// A backend to examine.
pub(super) struct Patient {
    name: &'static str,
    /// Itself, or why it is not tried.
    backend: Result<Box<dyn Backend>, String>,
    /// Where it keeps what it compiles: empty at first, so that its first load is cold however often there was an examination before,
    /// and gone with it.
    cache: Option<TempDir>,
}

/// Examines this machine with the model in `args`.
///
/// # Errors
/// If anything is not as it should be: then the report has been printed. Also as the model has it; [`Failure::Interrupted`] after
/// Ctrl-C.
pub(crate) fn execute(args: &DoctorArgs, context: &Context) -> Result<(), Failure> {
    context.watch_for_interrupts();
    let (mut meter, no_meter) = match energy::open(&context.environment) {
        Ok(watch) => (Some(watch), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let subject = Subject::prepare(args, context)?;
    let name = meter.as_ref().map(EnergyWatch::meter).ok_or_else(|| no_meter.unwrap_or_default());
    let mut report = Report::new(Machine::this(), name, &subject);
    for patient in patients(&subject, context) {
        if context.interrupt.is_raised() {
            return Err(Failure::Interrupted("the examination is not complete".into()));
        }
        begin(patient.name, &mut report, args);
        context.ui.note(format_args!("trying {}", patient.name));
        report.add(Trial::of(patient, &subject, args.decoded, meter.as_mut(), context)?);
    }
    begin("the placement", &mut report, args);
    report.conclude(Engine::ask(&subject, context)?);
    // First, so that no finding is lost to a path that cannot be written.
    if args.json {
        context.ui.json(&report)?;
    } else {
        context.ui.write(&report.text())?;
    }
    if let Some(path) = &args.report {
        save(path, &report.markdown())?;
    }
    report.verdict()
}

/// Notes that `what` is examined next. A failure of Core ML may end the whole program: what was found before that is in the file by then.
fn begin(what: &'static str, report: &mut Report, args: &DoctorArgs) {
    report.begin(what);
    if let Some(path) = &args.report {
        // Whether it can be written is said at the end.
        save(path, &report.markdown()).ok();
    }
}

/// What Core ML says of the Neural Engine.
pub(super) struct Engine {
    /// Whether there is one; `None` where there is no Core ML.
    is_there: Option<bool>,
    /// Where the bundle runs, or why that is not known.
    placement: Result<Placement, String>,
}

impl Engine {
    /// # Errors
    /// [`Failure::Interrupted`]; whatever else goes wrong is the answer.
    fn ask(subject: &Subject, context: &Context) -> Result<Self, Failure> {
        let backend = backend::coreml(ComputeUnits::default(), context);
        let is_there = backend.ok().and_then(|backend| backend.has_neural_engine().ok());
        let said_before = subject.bundle.placement.clone();
        let placement = match placement::ask(&subject.dir, &subject.bundle, context) {
            Ok(placement) => Ok(placement),
            Err(Failure::Interrupted(_)) => {
                return Err(Failure::Interrupted("the examination is not complete".into()));
            }
            // Better than nothing where there is no Core ML: the report names the system.
            Err(_) if said_before.is_some() && is_there.is_none() => {
                Ok(said_before.expect("it was looked at"))
            }
            Err(failure) => Err(trial::reason(failure)?),
        };
        Ok(Engine { is_there, placement })
    }
}

/// Every backend there may be. The reference interpreter is left out: the checkpoint itself is compared with.
fn patients(subject: &Subject, context: &Context) -> Vec<Patient> {
    let cpu = CpuBackend::new(CpuOptions::default());
    let simulated: Result<Box<dyn Backend>, String> = match subject.bundle.model.parameters {
        ..=MOST_SIMULATED => Ok(Box::new(AneSim::new(Faults::M1))),
        parameters => Err(format!("too slow for {parameters} parameters")),
    };
    vec![
        Patient { name: "cpu", backend: Ok(Box::new(cpu)), cache: None },
        Patient { name: "ane-sim", backend: simulated, cache: None },
        coreml("coreml cpu_only", ComputeUnits::CpuOnly, context),
        // Last, since most can go wrong there.
        coreml("coreml cpu_and_ne", ComputeUnits::CpuAndNeuralEngine, context),
    ]
}

fn coreml(name: &'static str, units: ComputeUnits, context: &Context) -> Patient {
    let cache = match TempDir::new() {
        Ok(cache) => cache,
        Err(error) => {
            return Patient { name, backend: Err(format!("no place to compile: {error}")), cache: None };
        }
    };
    let backend = backend::coreml_in(cache.path().to_owned(), units, context);
    let backend = backend.map(|backend| Box::new(backend) as Box<dyn Backend>).map_err(|error| error.message);
    Patient { name, backend, cache: Some(cache) }
}
