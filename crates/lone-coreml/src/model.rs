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
    listener: Option<Listener>,
}

/// Who is told of recoveries.
pub(crate) type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// A function that fails more often than so, with fewer than [`SETTLED`] good passes in between, is not saved any more: what looks slow
/// would in truth be broken.
const MOST_RECOVERIES: u32 = 3;
const SETTLED: u32 = 1000;

/// A function that may not be loaded yet.
struct Loading<F: Framework> {
    selection: Selection,
    bound: Option<Bound<F>>,
    /// How often it was loaded anew lately, and its good passes since.
    recoveries: u32,
    good_passes: u32,
}

impl<F: Framework> CoremlModel<F> {
    pub(crate) fn new(
        framework: Arc<F>,
        units: ComputeUnits,
        entry: Entry,
        functions: Vec<Selection>,
        listener: Option<Listener>,
    ) -> Self {
        let loading = |selection| Loading { selection, bound: None, recoveries: 0, good_passes: 0 };
        let functions = functions.into_iter().map(loading).collect();
        CoremlModel { framework, units, entry, functions, listener }
    }

    /// Loads function number `index`, in the place of what was loaded before.
    pub(crate) fn load(&mut self, index: usize) -> Result<(), CoremlError> {
        let Loading { selection, bound, .. } = &mut self.functions[index];
        // Core ML must not hold the program twice.
        *bound = None;
        let framework = self.framework.as_ref();
        let task = format!("loading {} on {}", selection.name, self.units.name());
        let function = self.entry.load(
            framework,
            &task,
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
        let Loading { selection, bound, .. } = &mut self.functions[index];
        let bound = bound.as_mut().expect("it was loaded before");
        bound.run(&self.framework, &selection.signature, inputs, outputs)
    }

    /// Notes that a pass went well.
    fn settle(&mut self, index: usize) {
        let Loading { recoveries, good_passes, .. } = &mut self.functions[index];
        if *recoveries > 0 {
            *good_passes += 1;
            if *good_passes >= SETTLED {
                (*recoveries, *good_passes) = (0, 0);
            }
        }
    }

    /// Loads a function anew that has failed with `first`, and repeats the pass.
    fn recover(
        &mut self,
        index: usize,
        first: &Fault,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), Fault> {
        const EVENT: &str = "it was loaded anew";
        let loading = &mut self.functions[index];
        if loading.recoveries >= MOST_RECOVERIES {
            // The next pass begins afresh.
            (loading.bound, loading.recoveries, loading.good_passes) = (None, 0, 0);
            return Err(Fault(format!("{first}; {MOST_RECOVERIES} times lately {EVENT} after a failure")));
        }
        (loading.recoveries, loading.good_passes) = (loading.recoveries + 1, 0);
        self.load(index).map_err(|error| Fault(error.to_string()).after(EVENT, Some(first)))?;
        self.attempt(index, inputs, outputs).map_err(|fault| fault.after(EVENT, Some(first)))?;
        if let Some(listener) = &self.listener {
            let name = &self.functions[index].selection.name;
            listener(&format!("`{name}` failed, and ran when {EVENT}: {first}"));
        }
        Ok(())
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
        match self.attempt(index, inputs, outputs) {
            Ok(()) => self.settle(index),
            Err(first) => self.recover(index, &first, inputs, outputs).map_err(failed)?,
        }
        Ok(())
    }
}
