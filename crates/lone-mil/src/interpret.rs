//! The reference interpreter: programs run operation by operation, as their rows define them.
//!
//! It is slow, simple, and the oracle of every faster backend. How numbers behave is a parameter:
//! with [`Reference`] each result is computed in f32 and rounded once; other [`Numerics`] model some hardware.

mod numerics;
mod runs;
mod tensor;

use std::path::Path;
use std::sync::Arc;

use half::slice::HalfFloatSliceExt;

pub use numerics::{Binary, Numerics, Reduction, Reference, Unary, round_to_half};
pub(crate) use runs::each_run;
pub(crate) use tensor::{Data, Rows, Tensor, View};

use crate::ops::eval::Eval;
use crate::ops::{Call, OpError};
use crate::package::Package;
use crate::program::{Arg, Function, Op, ValueId};
use crate::verify::verify_function;
use crate::{
    Backend, BackendError, DType, Keep, LoadOptions, Model, Port, Signature, TensorMut, TensorRef,
    TensorType, ValueType,
};

/// The backend that interprets, with arithmetic `N`.
#[derive(Debug, Clone, Default)]
pub struct Interpreter<N> {
    numerics: Arc<N>,
}

impl<N: Numerics + Default> Interpreter<N> {
    /// The interpreter with the default `N`.
    pub fn new() -> Self {
        Interpreter::default()
    }
}

impl<N: Numerics + 'static> Interpreter<N> {
    /// The interpreter with these numerics.
    pub fn with(numerics: N) -> Self {
        Interpreter { numerics: Arc::new(numerics) }
    }

    /// Prepares a package that has been read.
    ///
    /// # Errors
    /// As [`Backend::load`].
    pub fn prepare(&self, package: Package, options: &LoadOptions) -> Result<Interpreted, BackendError> {
        let available = || package.program.functions.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
        for name in &options.functions {
            if package.program.function(name).is_none() {
                return Err(BackendError::NoFunction { function: name.clone(), available: available() });
            }
        }
        if let Some(keep) =
            options.keep.iter().find(|keep| package.program.function(&keep.function).is_none())
        {
            return Err(BackendError::NoFunction { function: keep.function.clone(), available: available() });
        }
        let wanted = |name: &String| options.functions.is_empty() || options.functions.contains(name);
        let plans = (package.program.functions.iter().enumerate())
            .filter(|(_, function)| wanted(&function.name))
            .map(|(index, function)| Plan::new(index, function, &options.keep))
            .collect::<Result<_, _>>()?;
        Ok(Interpreted { package, plans, numerics: self.numerics.clone() })
    }
}

impl<N: Numerics + 'static> Backend for Interpreter<N> {
    fn name(&self) -> &'static str {
        self.numerics.name()
    }

    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError> {
        let package = Package::open(package).map_err(|error| BackendError::Package(error.into()))?;
        Ok(Box::new(self.prepare(package, options)?))
    }
}

/// A package that can be interpreted.
pub struct Interpreted {
    package: Package,
    plans: Vec<Plan>,
    numerics: Arc<dyn Numerics>,
}

/// One function: its calls checked, and when its values die.
struct Plan {
    /// Index into the program's functions.
    function: usize,
    name: String,
    signature: Signature,
    /// Outputs, then kept values.
    outputs: Vec<ValueId>,
    steps: Vec<Step>,
}

/// One operation.
struct Step {
    call: Call,
    results: Vec<TensorType>,
    /// Values that nothing reads after this operation.
    dead: Vec<ValueId>,
}

impl Plan {
    fn new(index: usize, function: &Function, keep: &[Keep]) -> Result<Self, BackendError> {
        verify_function(function).map_err(|error| BackendError::Package(error.into()))?;
        let mut outputs = function.outputs.clone();
        for keep in keep.iter().filter(|keep| keep.function == function.name) {
            outputs
                .push(function.value_named(&keep.value).ok_or_else(|| BackendError::NoValue(keep.clone()))?);
        }
        let ports = |ids: &[ValueId]| ids.iter().map(|&id| port(function, id)).collect::<Result<Vec<_>, _>>();
        let signature = Signature { inputs: ports(&function.inputs)?, outputs: ports(&outputs)? };
        let mut steps = (function.ops.iter()).map(|op| step(function, op)).collect::<Result<Vec<_>, _>>()?;
        let mut last_use: Vec<Option<usize>> = vec![None; function.values.len()];
        for (at, op) in function.ops.iter().enumerate() {
            op.outputs.iter().chain(op.reads()).for_each(|id| last_use[id.index()] = Some(at));
        }
        for (i, at) in last_use.iter().enumerate() {
            let id = ValueId(i as u32);
            if let Some(at) = at.filter(|_| !outputs.contains(&id)) {
                steps[at].dead.push(id);
            }
        }
        Ok(Plan { function: index, name: function.name.clone(), signature, outputs, steps })
    }
}

/// The port of a value that callers pass or receive.
fn port(function: &Function, id: ValueId) -> Result<Port, BackendError> {
    let value = function.value(id);
    match &value.ty {
        ValueType::Tensor(ty) if matches!(ty.dtype, DType::F16 | DType::F32 | DType::I32) => {
            Ok(Port { name: value.name.clone(), ty: ty.clone() })
        }
        ty => Err(BackendError::Unsupported {
            place: format!("function `{}`, `{}`", function.name, value.name),
            what: format!("{ty} as an input or output"),
        }),
    }
}

fn step(function: &Function, op: &Op) -> Result<Step, BackendError> {
    let unsupported = |what: String| {
        let place = format!("function `{}`, `{}`", function.name, op.name);
        Err(BackendError::Unsupported { place, what })
    };
    if !op.spec.can_run() {
        return unsupported(op.spec.name.to_owned());
    }
    let call = Call::new(op.spec, function, &op.args).map_err(|error| BackendError::Package(error.into()))?;
    let results: Vec<_> = op.outputs.iter().map(|&id| function.value(id).ty.tensor().clone()).collect();
    // What a `const` may hold, but no operation takes.
    let strange = |ty: &TensorType| matches!(ty.dtype, DType::F64 | DType::BF16 | DType::U64);
    match results.iter().find(|ty| strange(ty) || ty.shape.elements() > MAX_ELEMENTS) {
        Some(ty) => unsupported(ty.to_string()),
        None => Ok(Step { call, results, dead: Vec::new() }),
    }
}

/// Larger tensors are refused at load, before memory is asked for that is not there.
const MAX_ELEMENTS: usize = 1 << 31;

impl Model for Interpreted {
    fn signature(&self, function: &str) -> Result<&Signature, BackendError> {
        Ok(&self.plan(function)?.signature)
    }

    fn run(
        &mut self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), BackendError> {
        let plan = self.plan(function)?;
        plan.signature.check(function, inputs, outputs)?;
        let values = self.values(plan, inputs)?;
        for (id, output) in plan.outputs.iter().zip(outputs) {
            write(values[id.index()].as_ref().expect("outputs outlive the run"), output);
        }
        Ok(())
    }
}

impl Interpreted {
    fn plan(&self, function: &str) -> Result<&Plan, BackendError> {
        self.plans.iter().find(|plan| plan.name == function).ok_or_else(|| BackendError::NoFunction {
            function: function.to_owned(),
            available: self.plans.iter().map(|plan| plan.name.clone()).collect(),
        })
    }

    /// Runs all operations; what is left of the values are the outputs.
    fn values<'v>(
        &'v self,
        plan: &'v Plan,
        inputs: &[TensorRef<'v>],
    ) -> Result<Vec<Option<Tensor<'v>>>, BackendError> {
        let function = &self.package.program.functions[plan.function];
        let mut values: Vec<Option<Tensor<'v>>> = vec![None; function.values.len()];
        for ((&id, &input), port) in function.inputs.iter().zip(inputs).zip(&plan.signature.inputs) {
            values[id.index()] = Some(of_input(port.ty.clone(), input));
        }
        for (op, step) in function.ops.iter().zip(&plan.steps) {
            let args = self.arguments(op, &values)?;
            let results = evaluate(&step.call, &args, &step.results, &*self.numerics).map_err(|error| {
                BackendError::Run { function: plan.name.clone(), what: format!("`{}`: {error}", op.name) }
            })?;
            for (&id, result) in op.outputs.iter().zip(results) {
                values[id.index()] = Some(result);
            }
            step.dead.iter().for_each(|id| values[id.index()] = None);
        }
        Ok(values)
    }

    fn arguments<'v>(
        &'v self,
        op: &'v Op,
        values: &[Option<Tensor<'v>>],
    ) -> Result<Vec<Vec<Tensor<'v>>>, BackendError> {
        let value = |id: &ValueId| values[id.index()].clone().expect("values live to their last use");
        let argument = |arg: &'v Option<Arg>| {
            Ok(match arg {
                None => Vec::new(),
                Some(Arg::Value(id)) => vec![value(id)],
                Some(Arg::Values(ids)) => ids.iter().map(value).collect(),
                Some(Arg::Literal(literal)) => {
                    let tensor = Tensor::of_literal(literal, &self.package.blobs);
                    vec![tensor.map_err(|error| BackendError::Package(error.into()))?]
                }
            })
        };
        op.args.iter().map(argument).collect()
    }
}

/// The results of a call that has been checked.
pub(crate) fn evaluate<'v>(
    call: &Call,
    args: &[Vec<Tensor<'v>>],
    results: &[TensorType],
    numerics: &dyn Numerics,
) -> Result<Vec<Tensor<'v>>, OpError> {
    let eval = call.spec().eval.expect("operations without a meaning are refused at load");
    eval(&Eval { call, args, results, numerics })
}

fn of_input<'v>(ty: TensorType, input: TensorRef<'v>) -> Tensor<'v> {
    match input {
        TensorRef::F16(halves) => Tensor { ty, data: Data::Halves(halves) },
        TensorRef::F32(floats) => Tensor::floats(ty, floats.to_vec()),
        TensorRef::I32(ints) => Tensor::ints(ty, ints.iter().map(|&value| value.into()).collect()),
    }
}

fn write(tensor: &Tensor<'_>, output: &mut TensorMut<'_>) {
    match (output, &tensor.data) {
        (TensorMut::F16(out), Data::Halves(halves)) => out.copy_from_slice(halves),
        (TensorMut::F16(out), _) => out.convert_from_f32_slice(&tensor.as_floats()),
        (TensorMut::F32(out), _) => out.copy_from_slice(&tensor.as_floats()),
        (TensorMut::I32(out), _) => {
            out.iter_mut().zip(&*tensor.as_ints()).for_each(|(out, &value)| *out = value as i32);
        }
    }
}

#[cfg(test)]
mod tests;
