//! A loaded package: its functions as plans over one arena, its weights mapped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lone_mil::{BackendError, BlobFile, Model, Signature, StepProfile, TensorMut, TensorRef};

use crate::arena::Arena;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::steps::Context;
use crate::{Kernels, Pool};

/// Compiled functions, ready to run.
pub struct CpuModel {
    pub(crate) plans: Vec<Plan>,
    pub(crate) arena: Arena,
    pub(crate) blobs: BlobFile,
    pub(crate) kernels: Kernels,
    pub(crate) pool: Arc<Pool>,
    /// One a plan, if it is asked for.
    pub(crate) profiles: Option<Vec<Profile>>,
}

impl CpuModel {
    /// The plan of `function`.
    ///
    /// # Errors
    /// [`BackendError::NoFunction`] if it is not there or was not loaded.
    pub fn plan(&self, function: &str) -> Result<&Plan, BackendError> {
        self.index(function).map(|index| &self.plans[index])
    }

    /// Bytes of working memory: constants and values of all functions.
    pub fn arena_bytes(&self) -> usize {
        self.arena.slots() * size_of::<f32>()
    }

    fn index(&self, function: &str) -> Result<usize, BackendError> {
        self.plans.iter().position(|plan| plan.function == function).ok_or_else(|| BackendError::NoFunction {
            function: function.into(),
            available: self.plans.iter().map(|plan| plan.function.clone()).collect(),
        })
    }
}

impl Model for CpuModel {
    /// Times are there only if the backend was made to profile.
    fn profile(&self, function: &str) -> Result<Vec<StepProfile>, BackendError> {
        let index = self.index(function)?;
        let timed = self.profiles.as_ref().map(|profiles| &profiles[index]);
        Ok(Profile::of(&self.plans[index], timed))
    }

    fn signature(&self, function: &str) -> Result<&Signature, BackendError> {
        self.plan(function).map(|plan| &plan.signature)
    }

    fn run(
        &mut self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), BackendError> {
        let index = self.index(function)?;
        let plan = &mut self.plans[index];
        plan.signature.check(function, inputs, outputs)?;
        let mut context = Context {
            arena: &mut self.arena,
            inputs,
            outputs,
            blobs: &self.blobs,
            kernels: self.kernels,
            pool: &self.pool,
            visible: &mut plan.visible,
            failure: None,
        };
        let profile = self.profiles.as_mut().map(|profiles| &mut profiles[index]);
        let steps = &plan.steps;
        // Nothing of a run that panicked is used again: the next one writes every value before it reads it.
        let run = AssertUnwindSafe(|| {
            match profile {
                None => steps.iter().for_each(|step| step.run(&mut context)),
                Some(profile) => profile.run(steps, &mut context),
            }
            context.failure.map_or(Ok(()), Err)
        });
        catch_unwind(run)
            .unwrap_or_else(|panic| Err(message(&*panic)))
            .map_err(|what| BackendError::Run { function: function.into(), what })
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::arena::{BufferId, Span};
    use crate::compile::kind;
    use crate::steps::{Step, Unary};

    fn model(steps: Vec<Step>) -> CpuModel {
        let signature = Signature { inputs: Vec::new(), outputs: Vec::new() };
        let plan = Plan { function: "f".into(), signature, steps, visible: Vec::new(), slots: 8 };
        CpuModel {
            plans: vec![plan],
            arena: Arena::new(8).unwrap(),
            blobs: BlobFile::empty("none"),
            kernels: Kernels::detect(),
            pool: Arc::new(Pool::new(NonZeroUsize::MIN)),
            profiles: None,
        }
    }

    fn exp(x: usize, out: usize) -> Step {
        let span = |start| Span { buffer: BufferId::Value(0), start, len: 4 };
        Unary { op: kind::Unary::Exp, x: span(x), out: span(out) }.into()
    }

    #[test]
    fn a_step_that_panics_fails_the_run_and_says_why() {
        let error = model(vec![exp(0, 2)]).run("f", &[], &mut []).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("`f` failed: the planner keeps what a step reads apart"), "{message}");
        assert!(model(vec![exp(0, 4)]).run("f", &[], &mut []).is_ok());
    }
}
