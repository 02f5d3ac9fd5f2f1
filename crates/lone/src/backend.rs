//! `--backend`: who computes.

use std::num::NonZeroUsize;

use lone_anesim::{AneSim, Faults};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_mil::{Backend, Interpreter, Reference};

use crate::args::{AnePreset, BackendChoice, EngineArgs};
use crate::failure::UserError;

/// The backend that was asked for; that of the CPU has one thread per physical core unless it was said.
///
/// # Errors
/// If it cannot run here.
pub(crate) fn choose(args: &EngineArgs) -> Result<Box<dyn Backend>, UserError> {
    match args.backend {
        BackendChoice::Auto | BackendChoice::Cpu => {
            let threads = args.threads.and_then(NonZeroUsize::new);
            let huge_pages = args.huge_pages;
            Ok(Box::new(CpuBackend::new(CpuOptions { threads, huge_pages, ..CpuOptions::default() })))
        }
        BackendChoice::AneSim => Ok(Box::new(AneSim::new(faults(args.ane_preset)))),
        BackendChoice::Reference => Ok(Box::new(Interpreter::<Reference>::new())),
        BackendChoice::Coreml => Err(UserError::new("this lone was built without Core ML")
            .with_hint("--backend cpu or --backend reference")),
    }
}

fn faults(preset: AnePreset) -> Faults {
    match preset {
        AnePreset::M1 => Faults::M1,
        AnePreset::M5 => Faults::M5,
        AnePreset::Exact => Faults::EXACT,
    }
}
