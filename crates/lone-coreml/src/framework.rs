//! What only Core ML can do, as narrow as it can be drawn. Everything above is plain Rust and is tested on a fake.

use std::path::Path;

use lone_mil::{Signature, TensorRef, TensorType};

use crate::{Device, Fault, PlacedOp};

/// Core ML, or something that plays it.
pub trait Framework: Send + Sync + Sized + 'static {
    /// Memory that a program reads or writes.
    type Array: Array;
    /// A loaded function of a program.
    type Function: Predict<Self>;
    /// What asks a prediction to write to the arrays of a [`Slot`].
    type Backings: Send;

    /// The version and build of the system: what one refuses, another may not.
    fn system(&self) -> String;

    /// The devices that programs may run on here.
    ///
    /// # Errors
    /// What Core ML said.
    fn devices(&self) -> Result<Vec<Device>, Fault>;

    /// Compiles the `.mlpackage` at `package` to a `.mlmodelc` directory at `compiled`, where nothing is yet.
    ///
    /// # Errors
    /// What the compiler said.
    fn compile(&self, package: &Path, compiled: &Path) -> Result<(), Fault>;

    /// Loads a function of a compiled program for `units`.
    ///
    /// # Errors
    /// What Core ML said; a damaged or foreign `.mlmodelc` is one reason.
    fn load(
        &self,
        compiled: &Path,
        function: &Selection,
        units: ComputeUnits,
    ) -> Result<Self::Function, Fault>;

    /// A zeroed array of this type; its strides are the framework's choice.
    ///
    /// # Errors
    /// When there is no memory, or no such array.
    fn array(&self, ty: &TensorType) -> Result<Self::Array, Fault>;

    /// What asks predictions of a function of this signature to write to `arrays`, one an output.
    ///
    /// # Errors
    /// When Core ML refuses them.
    fn backings(&self, signature: &Signature, arrays: &[Self::Array]) -> Result<Self::Backings, Fault>;

    /// Where Core ML means to run each operation of a function.
    ///
    /// # Errors
    /// What Core ML said.
    fn plan(
        &self,
        compiled: &Path,
        function: &Selection,
        units: ComputeUnits,
    ) -> Result<Vec<PlacedOp>, Fault>;
}

/// A function of a package, as Core ML wants to hear of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Its name.
    pub name: String,
    /// Whether it is the one that runs when none is named; old programs must not be asked for a function by name.
    pub is_default: bool,
    /// What goes in and comes out.
    pub signature: Signature,
}

/// A loaded function.
pub trait Predict<F: Framework>: Send {
    /// Runs once: reads `inputs`, in signature order, and writes to the arrays of `slot`. Returns the outputs that
    /// were put elsewhere instead, by position.
    ///
    /// # Errors
    /// What Core ML said.
    fn predict(
        &mut self,
        inputs: &[Input<'_, F::Array>],
        slot: &Slot<F>,
    ) -> Result<Vec<(usize, F::Array)>, Fault>;
}

/// One input of a prediction.
#[derive(Debug)]
pub enum Input<'a, A> {
    /// An array that was filled for it.
    Own(&'a A),
    /// The caller's memory, dense and row-major, read where it lies.
    InPlace(TensorRef<'a>, &'a TensorType),
}

/// A set of arrays for the outputs of a function.
pub struct Slot<F: Framework> {
    /// One an output, in signature order.
    pub arrays: Vec<F::Array>,
    /// What asks a prediction to use them.
    pub backings: F::Backings,
}

/// Memory with the strides that its owner chose.
pub trait Array: Send {
    /// Shows the bytes and the strides, in elements.
    ///
    /// # Errors
    /// When Core ML does not hand them out.
    fn read(&self, visit: &mut dyn FnMut(&[u8], &[usize])) -> Result<(), Fault>;

    /// Shows the bytes, to be written, and the strides, in elements.
    ///
    /// # Errors
    /// When Core ML does not hand them out.
    fn write(&mut self, visit: &mut dyn FnMut(&mut [u8], &[usize])) -> Result<(), Fault>;
}

/// Which processors Core ML may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ComputeUnits {
    /// The CPU and the Neural Engine.
    #[default]
    CpuAndNeuralEngine,
    /// The CPU and the GPU.
    CpuAndGpu,
    /// The CPU alone.
    CpuOnly,
    /// Any.
    All,
}

impl ComputeUnits {
    /// The name users choose it by.
    pub fn name(self) -> &'static str {
        match self {
            ComputeUnits::CpuAndNeuralEngine => "cpu_and_ne",
            ComputeUnits::CpuAndGpu => "cpu_and_gpu",
            ComputeUnits::CpuOnly => "cpu_only",
            ComputeUnits::All => "all",
        }
    }
}
