//! `--backend`: who computes.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ValueEnum;
use lone_anesim::{AneSim, Faults};
use lone_coreml::{ComputeUnits, CoremlBackend, CoremlOptions};
use lone_cpu::{CpuBackend, CpuOptions, Isa};
use lone_mil::{Backend, Interpreter, Reference};

use crate::args::{AnePreset, BackendChoice, EngineArgs, UnitsArgs, UnitsChoice};
use crate::commands::Context;
use crate::environment::Environment;
use crate::failure::UserError;

/// What is chosen where nobody chose, not even by `LONE_BACKEND`: the Neural Engine where there is one.
const AUTO: BackendChoice =
    if cfg!(target_os = "macos") { BackendChoice::Coreml } else { BackendChoice::Cpu };

/// Directory of the programs that Core ML has compiled, in lone's cache.
const COMPILED: &str = "coreml";

/// The backend that was asked for; that of the CPU has one thread per physical core unless it was said.
///
/// # Errors
/// If it cannot run here, or has no place for what it compiles.
pub(crate) fn choose(args: &EngineArgs, context: &Context) -> Result<Box<dyn Backend>, UserError> {
    let backend = resolve(args.backend, args.units, context)?;
    if args.fast_int16 {
        check_fast_int16(backend, Isa::detect())?;
    }
    match backend {
        BackendChoice::Auto => unreachable!("it has been resolved"),
        BackendChoice::Cpu => Ok(Box::new(CpuBackend::new(CpuOptions {
            threads: args.threads.and_then(NonZeroUsize::new),
            huge_pages: args.huge_pages,
            fast_int16: args.fast_int16,
            ..CpuOptions::default()
        }))),
        BackendChoice::AneSim => Ok(Box::new(AneSim::new(faults(args.ane_preset)))),
        BackendChoice::Reference => Ok(Box::new(Interpreter::<Reference>::new())),
        BackendChoice::Coreml => Ok(Box::new(coreml(units(args.units), context)?)),
    }
}

/// Says where `--fast-int16` cannot be had.
///
/// # Errors
/// If `backend` is not the CPU, or `isa` multiplies f32 as fast.
pub(crate) fn check_fast_int16(backend: BackendChoice, isa: Isa) -> Result<(), UserError> {
    if backend != BackendChoice::Cpu {
        let what = "--fast-int16 is for the CPU backend, which is not what computes here";
        return Err(UserError::new(what).with_hint("--backend cpu"));
    }
    if !isa.has_fast_int16() {
        let what = format_args!("--fast-int16 gains nothing with {isa}, which is what computes here");
        return Err(UserError::new(what).with_hint("leave it out; AVX-512 with VNNI has what it needs"));
    }
    Ok(())
}

/// The Core ML of this system.
///
/// # Errors
/// If there is none, or no place for what it compiles.
pub(crate) fn coreml(units: ComputeUnits, context: &Context) -> Result<CoremlBackend, UserError> {
    coreml_in(context.cache_dir()?.join(COMPILED), units, context)
}

/// The same, which keeps what it compiles in the directory `cache`.
///
/// # Errors
/// If there is none.
pub(crate) fn coreml_in(
    cache: PathBuf,
    units: ComputeUnits,
    context: &Context,
) -> Result<CoremlBackend, UserError> {
    let warner = context.ui.warner();
    CoremlBackend::new(CoremlOptions { units, cache })
        .map(|backend| backend.with_listener(warner))
        .map_err(|error| UserError::new(error).with_hint("--backend cpu, ane-sim or reference"))
}

/// Who computes. `--cpu-only` means the CPU backend, but on Core ML, which then runs on the CPU.
///
/// # Errors
/// As [`auto`].
pub(crate) fn resolve(
    backend: BackendChoice,
    units: UnitsArgs,
    context: &Context,
) -> Result<BackendChoice, UserError> {
    Ok(resolve_where(auto(&context.environment)?, backend, units))
}

/// What `auto` stands for here: what `LONE_BACKEND` says, or what the system has.
///
/// # Errors
/// If `LONE_BACKEND` is none of the backends.
pub(crate) fn auto(environment: &Environment) -> Result<BackendChoice, UserError> {
    let Some(name) = environment.text("LONE_BACKEND") else { return Ok(AUTO) };
    match BackendChoice::from_str(name, false) {
        Ok(BackendChoice::Auto) => Ok(AUTO),
        Ok(chosen) => Ok(chosen),
        Err(_) => Err(UserError::new(format_args!("LONE_BACKEND is `{name}`, which is no backend"))
            .with_hint("auto, cpu, ane-sim, reference or coreml")),
    }
}

/// The same on a system where `auto` is chosen for who chose nothing.
fn resolve_where(auto: BackendChoice, backend: BackendChoice, units: UnitsArgs) -> BackendChoice {
    match backend {
        BackendChoice::Auto => auto,
        BackendChoice::Coreml => BackendChoice::Coreml,
        _ if units.cpu_only => BackendChoice::Cpu,
        chosen => chosen,
    }
}

/// The processors that Core ML may use.
pub(crate) fn units(args: UnitsArgs) -> ComputeUnits {
    if args.cpu_only {
        return ComputeUnits::CpuOnly;
    }
    match args.compute_units {
        UnitsChoice::CpuAndNe => ComputeUnits::CpuAndNeuralEngine,
        UnitsChoice::CpuAndGpu => ComputeUnits::CpuAndGpu,
        UnitsChoice::CpuOnly => ComputeUnits::CpuOnly,
        UnitsChoice::All => ComputeUnits::All,
    }
}

fn faults(preset: AnePreset) -> Faults {
    match preset {
        AnePreset::M1 => Faults::M1,
        AnePreset::M5 => Faults::M5,
        AnePreset::Exact => Faults::EXACT,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        engine: EngineArgs,
    }

    fn typed(flags: &[&str]) -> EngineArgs {
        Typed::parse_from([&["lone"], flags].concat()).engine
    }

    fn resolved(engine: &EngineArgs, auto: BackendChoice) -> BackendChoice {
        resolve_where(auto, engine.backend, engine.units)
    }

    #[test]
    fn auto_is_what_the_system_has_and_cpu_only_stays_on_it() {
        for auto in [BackendChoice::Cpu, BackendChoice::Coreml] {
            assert_eq!(resolved(&typed(&[]), auto), auto);
            assert_eq!(resolved(&typed(&["--cpu-only"]), auto), auto);
        }
    }

    #[test]
    fn cpu_only_is_a_matter_of_compute_units_on_core_ml_and_the_cpu_backend_elsewhere() {
        let coreml = typed(&["--backend", "coreml", "--cpu-only"]);
        assert_eq!(resolved(&coreml, BackendChoice::Cpu), BackendChoice::Coreml);
        assert_eq!(units(coreml.units), ComputeUnits::CpuOnly);
        let simulated = typed(&["--backend", "ane-sim", "--cpu-only"]);
        assert_eq!(resolved(&simulated, BackendChoice::Cpu), BackendChoice::Cpu);
    }

    #[test]
    fn compute_units_are_those_typed_and_the_neural_engine_unless_they_are() {
        assert_eq!(units(typed(&[]).units), ComputeUnits::CpuAndNeuralEngine);
        for name in ["cpu_and_ne", "cpu_and_gpu", "cpu_only", "all"] {
            assert_eq!(units(typed(&["--compute-units", name]).units).name(), name);
        }
    }
}
