//! A backend around another that looks at every value: it has them kept as extra outputs, which its caller does not see.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use half::f16;
use lone_mil::package::Package;
use lone_mil::{
    Backend, BackendError, DType, Function, Keep, LoadOptions, Model, Op, Signature, TensorMut, TensorRef,
    ValueId, ValueType,
};

use super::uses::{Uses, is_product};
use super::{FP16_MAX, PRODUCT_LIMIT, Ranges, ValueRange};

/// Watches the values of every program that is loaded by it.
pub struct RangeWatch<'a> {
    inner: &'a dyn Backend,
    ranges: Arc<Mutex<Ranges>>,
}

impl<'a> RangeWatch<'a> {
    /// Around `inner`, which computes.
    pub fn new(inner: &'a dyn Backend) -> Self {
        RangeWatch { inner, ranges: Arc::default() }
    }

    /// The ranges so far.
    pub fn ranges(&self) -> Ranges {
        lock(&self.ranges).clone()
    }

    /// Adds a range for every value that `function` computes, and gives the names of these values.
    fn begin(&self, package: &str, function: &Function) -> Vec<String> {
        let uses = Uses::of(function);
        let ranges = intermediates(function).map(|(id, op)| {
            let range = ValueRange::new(package, &function.name, &function.value(id).name, op.spec.name);
            let limit = match () {
                () if uses.may_be_infinite(id, op) => None,
                () if is_product(op) => Some(PRODUCT_LIMIT),
                () => Some(FP16_MAX),
            };
            ValueRange { limit, in_product: uses.in_product(id), only_weighs: uses.only_weighs(id), ..range }
        });
        let ranges: Vec<ValueRange> = ranges.collect();
        let names = ranges.iter().map(|range| range.value.clone()).collect();
        lock(&self.ranges).values.extend(ranges);
        names
    }
}

/// The fp16 values that `function` computes, with the operations that make them. Weights are not computed.
fn intermediates(function: &Function) -> impl Iterator<Item = (ValueId, &Op)> {
    let computed = function.ops.iter().filter(|op| !op.spec.name.starts_with("const"));
    let values = computed.flat_map(|op| op.outputs.iter().map(move |&id| (id, op)));
    let is_half = |ty: &ValueType| matches!(ty, ValueType::Tensor(ty) if ty.dtype == DType::F16);
    values.filter(move |&(id, _)| is_half(&function.value(id).ty))
}

impl Backend for RangeWatch<'_> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError> {
        let opened = Package::open(package).map_err(|error| BackendError::Package(error.into()))?;
        let name = package.file_name().unwrap_or(package.as_os_str()).to_string_lossy();
        let wanted =
            |function: &&Function| options.functions.is_empty() || options.functions.contains(&function.name);
        let mut all = options.clone();
        let mut counts = Vec::new();
        for function in opened.program.functions.iter().filter(wanted) {
            let outputs = function.outputs.iter().map(|&id| &function.value(id).name);
            let kept = options.keep.iter().filter(|keep| keep.function == function.name);
            let shown: Vec<&String> = outputs.chain(kept.map(|keep| &keep.value)).collect();
            let mut hidden = self.begin(&name, function);
            hidden.retain(|value| !shown.contains(&value));
            counts.push((function.name.clone(), hidden.len()));
            all.keep.extend(hidden.into_iter().map(|value| Keep { function: function.name.clone(), value }));
        }
        let inner = self.inner.load(package, &all)?;
        let watched = counts.into_iter().map(|(function, hidden)| {
            let signature = inner.signature(&function)?.clone();
            Ok(Watched::new(&lock(&self.ranges), &name, function, signature, hidden))
        });
        let functions = watched.collect::<Result<_, BackendError>>()?;
        Ok(Box::new(WatchedModel { inner, functions, ranges: self.ranges.clone() }))
    }
}

/// A function whose values are looked at.
struct Watched {
    name: String,
    /// What the caller sees.
    shown: Signature,
    /// Room for what it does not see.
    hidden: Vec<Vec<f16>>,
    /// The range of each output, shown ones first; outputs that are not computed have none.
    ranges: Vec<Option<usize>>,
}

impl Watched {
    /// `signature` is that of the inner model; its last `hidden` outputs are not the caller's.
    fn new(ranges: &Ranges, package: &str, name: String, mut signature: Signature, hidden: usize) -> Self {
        let range_of = |value: &str| {
            let of = |range: &ValueRange| (range.package.as_str(), &range.function) == (package, &name);
            ranges.values.iter().position(|range| of(range) && range.value == value)
        };
        let ranges = signature.outputs.iter().map(|port| range_of(&port.name)).collect();
        let hidden = signature.outputs.split_off(signature.outputs.len() - hidden);
        let hidden = hidden.iter().map(|port| vec![f16::ZERO; port.ty.shape.elements()]).collect();
        Watched { name, shown: signature, hidden, ranges }
    }
}

struct WatchedModel {
    inner: Box<dyn Model>,
    functions: Vec<Watched>,
    ranges: Arc<Mutex<Ranges>>,
}

impl Model for WatchedModel {
    fn signature(&self, function: &str) -> Result<&Signature, BackendError> {
        match self.functions.iter().find(|watched| watched.name == function) {
            Some(watched) => Ok(&watched.shown),
            None => self.inner.signature(function),
        }
    }

    fn run(
        &mut self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), BackendError> {
        let Some(watched) = self.functions.iter_mut().find(|watched| watched.name == function) else {
            return self.inner.run(function, inputs, outputs);
        };
        watched.shown.check(function, inputs, outputs)?;
        let hidden = watched.hidden.iter_mut().map(|buffer| TensorMut::F16(buffer));
        let mut all: Vec<TensorMut<'_>> = outputs.iter_mut().map(reborrowed).chain(hidden).collect();
        self.inner.run(function, inputs, &mut all)?;
        let mut ranges = lock(&self.ranges);
        for (output, range) in all.iter().zip(&watched.ranges) {
            if let (TensorRef::F16(elements), &Some(range)) = (output.as_ref(), range) {
                ranges.values[range].widen(elements);
            }
        }
        Ok(())
    }
}

fn reborrowed<'a>(buffer: &'a mut TensorMut<'_>) -> TensorMut<'a> {
    match buffer {
        TensorMut::F16(data) => TensorMut::F16(data),
        TensorMut::F32(data) => TensorMut::F32(data),
        TensorMut::I32(data) => TensorMut::I32(data),
    }
}

fn lock(ranges: &Mutex<Ranges>) -> MutexGuard<'_, Ranges> {
    ranges.lock().unwrap_or_else(PoisonError::into_inner)
}
