//! A package as the backend runs it: each function loaded when it is first needed, and again when it fails.

use std::sync::Arc;

use lone_mil::{BackendError, Model, Signature, TensorMut, TensorRef};

use crate::binding::Bound;
use crate::cache::Entry;
use crate::{ComputeUnits, CoremlError, Fault, Framework, Selection};

/// The functions of one package.
pub(crate) struct CoremlModel<F: Framework> {
    framework: Arc<F>,
    units: ComputeUnits,
    entry: Entry,
    functions: Vec<Loading<F>>,
}

/// A function that may not be loaded yet.
struct Loading<F: Framework> {
    selection: Selection,
    bound: Option<Bound<F>>,
}

impl<F: Framework> CoremlModel<F> {
    pub(crate) fn new(
        framework: Arc<F>,
        units: ComputeUnits,
        entry: Entry,
        functions: Vec<Selection>,
    ) -> Self {
        let functions = functions.into_iter().map(|selection| Loading { selection, bound: None }).collect();
        CoremlModel { framework, units, entry, functions }
    }

    /// Loads function number `index`, in the place of what was loaded before.
    pub(crate) fn load(&mut self, index: usize) -> Result<(), CoremlError> {
        let Loading { selection, bound } = &mut self.functions[index];
        // Core ML must not hold the program twice.
        *bound = None;
        let framework = self.framework.as_ref();
        let function = self.entry.load(
            framework,
            |compiled| framework.load(compiled, selection, self.units),
            |package, fault| CoremlError::Load { package, function: selection.name.clone(), fault },
        )?;
        *bound = Some(Bound::new(framework, function, &selection.name, &selection.signature)?);
        Ok(())
    }

    fn index(&self, function: &str) -> Result<usize, BackendError> {
        let names = || self.functions.iter().map(|loading| &loading.selection.name);
        names().position(|name| name == function).ok_or_else(|| BackendError::NoFunction {
            function: function.into(),
            available: names().cloned().collect(),
        })
    }

    fn attempt(
        &mut self,
        index: usize,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), Fault> {
        let Loading { selection, bound } = &mut self.functions[index];
        let bound = bound.as_mut().expect("it was loaded before");
        bound.run(&self.framework, &selection.signature, inputs, outputs)
    }
}

impl<F: Framework> Model for CoremlModel<F> {
    fn signature(&self, function: &str) -> Result<&Signature, BackendError> {
        self.index(function).map(|index| &self.functions[index].selection.signature)
    }

    /// As [`Model::run`]. A function that fails is loaded anew and tried once more: the daemon that drives the Neural Engine may have
    /// been restarted, and a program it has forgotten never runs again. Inputs are not changed by a run, so a second one is the same.
    fn run(
        &mut self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), BackendError> {
        let index = self.index(function)?;
        self.functions[index].selection.signature.check(function, inputs, outputs)?;
        if self.functions[index].bound.is_none() {
            self.load(index)?;
        }
        let failed = |fault: Fault| BackendError::Run { function: function.into(), what: fault.0 };
        if self.attempt(index, inputs, outputs).is_ok() {
            return Ok(());
        }
        self.load(index)?;
        self.attempt(index, inputs, outputs).map_err(failed)
    }
}
