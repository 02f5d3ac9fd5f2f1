//! The backend: the interpreter with the engine's numbers, for programs that the engine could run.

use std::path::Path;

use lone_mil::interpret::Interpreted;
use lone_mil::package::Package;
use lone_mil::{Backend, BackendError, DType, Function, Interpreter, LoadOptions, Model, Program, ValueId};

use crate::{Ane, Faults};

/// Interprets ML Programs as the Neural Engine computes: slowly, and with the same bits at every run.
#[derive(Debug, Clone)]
pub struct AneSim {
    interpreter: Interpreter<Ane>,
}

impl AneSim {
    /// An engine with these faults.
    pub fn new(faults: Faults) -> Self {
        AneSim { interpreter: Interpreter::with(Ane::new(faults)) }
    }

    /// Prepares a package that has been read, as [`Backend::load`] does.
    ///
    /// # Errors
    /// As [`Backend::load`].
    pub fn prepare(&self, package: Package, options: &LoadOptions) -> Result<Interpreted, BackendError> {
        check_types(&package.program, &options.functions)?;
        self.interpreter.prepare(package, options)
    }
}

impl Backend for AneSim {
    fn name(&self) -> &'static str {
        self.interpreter.name()
    }

    /// Opens a package.
    ///
    /// # Errors
    /// As [`Backend::load`]; [`BackendError::Unsupported`] also for an operation on fp32, which the engine does not have.
    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError> {
        let package = Package::open(package).map_err(|error| BackendError::Package(error.into()))?;
        Ok(Box::new(self.prepare(package, options)?))
    }
}

/// Refuses functions that compute in fp32; casts from it and to it happen outside the engine.
fn check_types(program: &Program, functions: &[String]) -> Result<(), BackendError> {
    let wanted = |function: &&Function| functions.is_empty() || functions.contains(&function.name);
    for function in program.functions.iter().filter(wanted) {
        let single = |id: &ValueId| function.value(*id).ty.tensor().dtype == DType::F32;
        let mut computing = function.ops.iter().filter(|op| !op.spec.is_constant() && op.spec.name != "cast");
        if let Some(op) = computing.find(|op| op.outputs.iter().chain(op.reads()).any(single)) {
            return Err(BackendError::Unsupported {
                place: format!("function `{}`, `{}`", function.name, op.name),
                what: format!("{} of fp32 on the Neural Engine", op.spec.name),
            });
        }
    }
    Ok(())
}
