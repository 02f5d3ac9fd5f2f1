//! Core ML as tests play it: packages are copied instead of compiled, and lone's CPU engine runs them.
//!
//! Its arrays have padded rows, as those of the Neural Engine do, and each of its calls can be made to fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use half::f16;
use lone_cpu::{CpuBackend, CpuModel, CpuOptions};
use lone_mil::{DType, LoadOptions, Model, Signature, TensorMut, TensorRef, TensorType};

use crate::{
    Array, ComputeUnits, CoremlBackend, CoremlOptions, Device, Fault, Framework, Input, PlacedOp, Predict,
    Selection, Slot, relocation, strided,
};

/// The calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Compile,
    Load,
    Array,
    Backings,
    Predict,
    Read,
    Write,
    Plan,
}

/// What was called how often, and what shall fail how often.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) calls: BTreeMap<Call, usize>,
    pub(crate) failures: BTreeMap<Call, usize>,
    /// Functions in the order they were loaded.
    pub(crate) loaded: Vec<String>,
    /// Inputs that were read in place.
    pub(crate) in_place: usize,
    /// What the system calls itself.
    pub(crate) system: String,
    /// Whether predictions ignore the arrays they are asked to write.
    pub(crate) writes_elsewhere: bool,
}

/// A framework on the CPU engine. Clones follow the same script.
#[derive(Clone)]
pub(crate) struct Fake {
    cpu: Arc<CpuBackend>,
    script: Arc<Mutex<Script>>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let threads = std::num::NonZeroUsize::new(1);
        let cpu = CpuBackend::new(CpuOptions { threads, ..CpuOptions::default() });
        Fake { cpu: Arc::new(cpu), script: Arc::default() }
    }

    /// A backend on this framework whose compiled programs are kept in `cache`.
    pub(crate) fn backend(&self, cache: &Path) -> CoremlBackend<Fake> {
        let options = CoremlOptions { units: ComputeUnits::default(), cache: cache.into() };
        CoremlBackend::with_framework(self.clone(), options)
    }

    /// Lets the next `times` calls fail.
    pub(crate) fn fail(&self, call: Call, times: usize) {
        self.script.lock().unwrap().failures.insert(call, times);
    }

    pub(crate) fn calls(&self, call: Call) -> usize {
        self.script.lock().unwrap().calls.get(&call).copied().unwrap_or(0)
    }

    pub(crate) fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    fn call(&self, call: Call) -> Result<(), Fault> {
        let mut script = self.script();
        *script.calls.entry(call).or_default() += 1;
        match script.failures.get_mut(&call) {
            Some(left) if *left > 0 => {
                *left -= 1;
                Err(Fault(format!("{call:?} was made to fail")))
            }
            _ => Ok(()),
        }
    }
}

/// Bytes with rows padded to 64. Clones share them, as references to an object do.
#[derive(Clone)]
pub(crate) struct PaddedArray {
    fake: Fake,
    bytes: Arc<Mutex<Vec<u8>>>,
    strides: Vec<usize>,
}

impl Array for PaddedArray {
    fn read(&self, visit: &mut dyn FnMut(&[u8], &[usize])) -> Result<(), Fault> {
        self.fake.call(Call::Read)?;
        visit(&self.bytes.lock().unwrap(), &self.strides);
        Ok(())
    }

    fn write(&mut self, visit: &mut dyn FnMut(&mut [u8], &[usize])) -> Result<(), Fault> {
        self.fake.call(Call::Write)?;
        visit(&mut self.bytes.lock().unwrap(), &self.strides);
        Ok(())
    }
}

/// A dense buffer of one type.
enum Dense {
    F16(Vec<f16>),
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl Dense {
    fn zeros(ty: &TensorType) -> Self {
        let elements = ty.shape.elements();
        match ty.dtype {
            DType::F32 => Dense::F32(vec![0.0; elements]),
            DType::I32 => Dense::I32(vec![0; elements]),
            _ => Dense::F16(vec![f16::ZERO; elements]),
        }
    }

    fn as_ref(&self) -> TensorRef<'_> {
        match self {
            Dense::F16(data) => TensorRef::F16(data),
            Dense::F32(data) => TensorRef::F32(data),
            Dense::I32(data) => TensorRef::I32(data),
        }
    }

    fn as_mut(&mut self) -> TensorMut<'_> {
        match self {
            Dense::F16(data) => TensorMut::F16(data),
            Dense::F32(data) => TensorMut::F32(data),
            Dense::I32(data) => TensorMut::I32(data),
        }
    }
}

pub(crate) struct FakeFunction {
    fake: Fake,
    model: CpuModel,
    name: String,
    signature: Signature,
}

impl Predict<Fake> for FakeFunction {
    fn predict(
        &mut self,
        inputs: &[Input<'_, PaddedArray>],
        slot: &Slot<Fake>,
    ) -> Result<Vec<(usize, PaddedArray)>, Fault> {
        self.fake.call(Call::Predict)?;
        let mut dense = Vec::new();
        for (input, port) in inputs.iter().zip(&self.signature.inputs) {
            let mut buffer = Dense::zeros(&port.ty);
            match input {
                Input::Own(array) => strided::take(*array, &mut buffer.as_mut(), &port.ty)?,
                Input::InPlace(..) => self.fake.script().in_place += 1,
            }
            dense.push(buffer);
        }
        let refs = inputs.iter().zip(&dense).map(|(input, dense)| match input {
            Input::InPlace(data, _) => *data,
            Input::Own(_) => dense.as_ref(),
        });
        let refs: Vec<_> = refs.collect();
        let declared = self.model.signature(&self.name).map_err(|error| Fault(error.to_string()))?;
        let declared = declared.outputs.clone();
        let mut results: Vec<_> = declared.iter().map(|port| Dense::zeros(&port.ty)).collect();
        let mut outputs: Vec<_> = results.iter_mut().map(Dense::as_mut).collect();
        self.model.run(&self.name, &refs, &mut outputs).map_err(|error| Fault(error.to_string()))?;
        let mut elsewhere = Vec::new();
        // Core ML returns results by name, each once, whoever asks for it twice.
        for (index, port) in self.signature.outputs.iter().enumerate() {
            let data = declared.iter().position(|declared| declared.name == port.name);
            let data = &results[data.ok_or_else(|| Fault(format!("there is no output `{}`", port.name)))?];
            if self.fake.script().writes_elsewhere {
                elsewhere.push((index, self.fake.array(&port.ty)?));
            }
            let target = elsewhere.last().map_or(&slot.backings[index], |(_, array)| array);
            strided::fill(&mut target.clone(), &data.as_ref(), &port.ty)?;
        }
        Ok(elsewhere)
    }
}

impl Framework for Fake {
    type Array = PaddedArray;
    type Function = FakeFunction;
    type Backings = Vec<PaddedArray>;

    fn system(&self) -> String {
        self.script().system.clone()
    }

    fn devices(&self) -> Result<Vec<Device>, Fault> {
        Ok(vec![Device::Cpu])
    }

    fn compile(&self, package: &Path, compiled: &Path) -> Result<(), Fault> {
        self.call(Call::Compile)?;
        relocation::copy(package, compiled).map_err(|error| Fault(error.to_string()))
    }

    fn load(&self, compiled: &Path, function: &Selection, _: ComputeUnits) -> Result<FakeFunction, Fault> {
        self.call(Call::Load)?;
        let options = LoadOptions { functions: vec![function.name.clone()], ..LoadOptions::default() };
        let model = self.cpu.open(compiled, &options).map_err(|error| Fault(error.to_string()))?;
        self.script().loaded.push(function.name.clone());
        let signature = function.signature.clone();
        Ok(FakeFunction { fake: self.clone(), model, name: function.name.clone(), signature })
    }

    fn array(&self, ty: &TensorType) -> Result<PaddedArray, Fault> {
        self.call(Call::Array)?;
        let element = ty.dtype.packed_bytes(1).expect("features have whole bytes");
        let mut strides = vec![1; ty.shape.len()];
        let mut rows = 1;
        for axis in (0..ty.shape.len().saturating_sub(1)).rev() {
            let below = axis + 1;
            strides[axis] = if below + 1 == ty.shape.len() {
                (ty.shape[below] * element).next_multiple_of(64) / element
            } else {
                strides[below] * ty.shape[below]
            };
            rows *= ty.shape[axis];
        }
        let width = ty.shape.last().map_or(element, |&width| (width * element).next_multiple_of(64));
        Ok(PaddedArray { fake: self.clone(), bytes: Arc::new(Mutex::new(vec![0; rows * width])), strides })
    }

    fn backings(&self, _: &Signature, arrays: &[PaddedArray]) -> Result<Vec<PaddedArray>, Fault> {
        self.call(Call::Backings)?;
        Ok(arrays.to_vec())
    }

    fn plan(&self, compiled: &Path, function: &Selection, _: ComputeUnits) -> Result<Vec<PlacedOp>, Fault> {
        self.call(Call::Plan)?;
        let package = lone_mil::package::Package::open(compiled).map_err(|error| Fault(error.to_string()))?;
        let function =
            package.program.function(&function.name).ok_or_else(|| Fault("no such function".into()))?;
        let ops = function.ops.iter().filter(|op| !op.spec.is_constant());
        let placed = ops.map(|op| PlacedOp {
            name: function.value(op.outputs[0]).name.clone(),
            operator: op.spec.name.into(),
            device: if op.spec.name == "conv" { Device::NeuralEngine } else { Device::Cpu },
            cost: None,
        });
        Ok(placed.collect())
    }
}
