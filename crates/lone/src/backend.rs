//! `--backend`: who computes.

use std::num::NonZeroUsize;

use lone_cpu::{CpuBackend, CpuOptions};
use lone_mil::{Backend, Interpreter, Reference};

use crate::args::BackendChoice;
use crate::failure::UserError;

/// The backend of that name, with `threads` threads or one per physical core.
///
/// # Errors
/// If it cannot run here.
pub(crate) fn choose(choice: BackendChoice, threads: Option<usize>) -> Result<Box<dyn Backend>, UserError> {
    match choice {
        BackendChoice::Auto | BackendChoice::Cpu => {
            let threads = threads.and_then(NonZeroUsize::new);
            Ok(Box::new(CpuBackend::new(CpuOptions { threads, ..CpuOptions::default() })))
        }
        BackendChoice::Reference => Ok(Box::new(Interpreter::<Reference>::new())),
        BackendChoice::Coreml => Err(UserError::new("this lone was built without Core ML")
            .with_hint("--backend cpu or --backend reference")),
    }
}
