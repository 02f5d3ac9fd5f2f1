//! The seam: what runs the functions of a package, whatever it runs them on.
//!
//! Load compiles once; [`Model::run`] is called once a pass and allocates nothing. Buffers belong to the caller
//! and are passed in signature order, so that caches can be read where they lie.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use half::f16;

use crate::{DType, TensorType};

/// Something that can run ML Programs.
pub trait Backend: Send + Sync {
    /// The name users choose it by, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Opens and compiles the `.mlpackage` at `package`.
    ///
    /// # Errors
    /// [`BackendError::Package`] for a damaged package, [`BackendError::Unsupported`] for an operation, type or
    /// shape this backend cannot run, named.
    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError>;
}

/// What to load of a package, and what to keep visible.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The functions that will be run; empty means all.
    pub functions: Vec<String>,
    /// Those that may not be run soon, or at all: a backend that loads functions one by one may put them off until
    /// they are.
    pub lazy: Vec<String>,
    /// Values, by function and name, that become extra outputs after the declared ones, in this order; no fusion
    /// removes them.
    pub keep: Vec<Keep>,
}

/// A value to keep visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The function it is in.
    pub function: String,
    /// Its name there.
    pub value: String,
}

/// A loaded package.
pub trait Model: Send {
    /// The buffers `function` takes and fills.
    ///
    /// # Errors
    /// [`BackendError::NoFunction`] if it is not there or was not loaded.
    fn signature(&self, function: &str) -> Result<&Signature, BackendError>;

    /// Runs `function`: reads `inputs` and fills `outputs`, both in signature order, each a dense row-major buffer
    /// of its port's size.
    ///
    /// # Errors
    /// [`BackendError::Buffer`] for a buffer of the wrong number, type or length; others as the backend meets them.
    fn run(
        &mut self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), BackendError>;

    /// The steps that `function` runs in, in order; none where the backend does not say.
    ///
    /// # Errors
    /// [`BackendError::NoFunction`] if it is not there or was not loaded.
    fn profile(&self, _function: &str) -> Result<Vec<StepProfile>, BackendError> {
        Ok(Vec::new())
    }
}

/// A step of a function, and its cost over all passes so far.
#[derive(Debug, Clone, PartialEq)]
pub struct StepProfile {
    /// Its kind, such as `projection`.
    pub kind: &'static str,
    /// What it does, in the backend's words.
    pub step: String,
    /// Bytes of weights that a pass reads.
    pub weight_bytes: usize,
    /// Multiply-adds of weights in a pass.
    pub multiply_adds: usize,
    /// Bytes of weights, caches and ports that a pass reads or writes at most.
    pub bytes: usize,
    /// How often it was timed.
    pub passes: u64,
    /// How long that took.
    pub time: Duration,
}

/// Ports of a function: the declared ones, then the kept values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Inputs, in order.
    pub inputs: Vec<Port>,
    /// Outputs, in order; kept values last.
    pub outputs: Vec<Port>,
}

/// A named, typed input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name in the program.
    pub name: String,
    /// Static type.
    pub ty: TensorType,
}

/// A borrowed input buffer.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the variants are the types")]
pub enum TensorRef<'a> {
    F16(&'a [f16]),
    F32(&'a [f32]),
    I32(&'a [i32]),
}

/// A borrowed output buffer.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants are the types")]
pub enum TensorMut<'a> {
    F16(&'a mut [f16]),
    F32(&'a mut [f32]),
    I32(&'a mut [i32]),
}

impl TensorRef<'_> {
    /// Element type.
    pub fn dtype(&self) -> DType {
        match self {
            TensorRef::F16(_) => DType::F16,
            TensorRef::F32(_) => DType::F32,
            TensorRef::I32(_) => DType::I32,
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        match self {
            TensorRef::F16(data) => data.len(),
            TensorRef::F32(data) => data.len(),
            TensorRef::I32(data) => data.len(),
        }
    }
}

impl TensorMut<'_> {
    /// The same buffer, to be read.
    pub fn as_ref(&self) -> TensorRef<'_> {
        match self {
            TensorMut::F16(data) => TensorRef::F16(data),
            TensorMut::F32(data) => TensorRef::F32(data),
            TensorMut::I32(data) => TensorRef::I32(data),
        }
    }
}

impl Signature {
    /// Checks buffers against the ports; every backend calls it before it runs.
    ///
    /// # Errors
    /// [`BackendError::Buffer`], naming the first port that does not fit.
    pub fn check(
        &self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &[TensorMut<'_>],
    ) -> Result<(), BackendError> {
        check_ports(function, "inputs", &self.inputs, inputs.len(), |i| inputs[i])?;
        check_ports(function, "outputs", &self.outputs, outputs.len(), |i| outputs[i].as_ref())
    }
}

fn check_ports<'a>(
    function: &str,
    side: &'static str,
    ports: &[Port],
    given: usize,
    buffer: impl Fn(usize) -> TensorRef<'a>,
) -> Result<(), BackendError> {
    let wrong = |port: String, expected: String, found: String| {
        Err(BackendError::Buffer { function: function.into(), port, expected, found })
    };
    if ports.len() != given {
        return wrong(side.into(), ports.len().to_string(), given.to_string());
    }
    for (i, port) in ports.iter().enumerate() {
        let data = buffer(i);
        if data.dtype() != port.ty.dtype || data.elements() != port.ty.shape.elements() {
            return wrong(
                port.name.clone(),
                port.ty.to_string(),
                format!("{} x {}", data.elements(), data.dtype()),
            );
        }
    }
    Ok(())
}

/// Why a backend could not load or run.
#[derive(Debug)]
pub enum BackendError {
    /// The package cannot be read; the source says which file, record or operation is wrong.
    Package(Box<dyn std::error::Error + Send + Sync>),
    /// The package has no such function, or it was not among those loaded.
    NoFunction {
        /// The one asked for.
        function: String,
        /// Those there are.
        available: Vec<String>,
    },
    /// A value to keep is not in the function.
    NoValue(Keep),
    /// This backend cannot run this operation, type or shape.
    Unsupported {
        /// Function and operation.
        place: String,
        /// What is not supported.
        what: String,
    },
    /// A buffer that does not fit its port.
    Buffer {
        /// The function that was to run.
        function: String,
        /// Which port.
        port: String,
        /// Its type, or how many ports there are.
        expected: String,
        /// What was passed.
        found: String,
    },
    /// The run itself failed, on a device or in a panic that was caught.
    Run {
        /// The function that was running.
        function: String,
        /// What happened.
        what: String,
    },
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendError::Package(source) => write!(f, "{source}"),
            BackendError::NoFunction { function, available } => {
                write!(f, "no function `{function}`; there are: {}", available.join(", "))
            }
            BackendError::NoValue(keep) => {
                write!(f, "function `{}` has no value `{}`", keep.function, keep.value)
            }
            BackendError::Unsupported { place, what } => write!(f, "{place}: {what} is not supported"),
            BackendError::Buffer { function, port, expected, found } => {
                write!(f, "`{function}`: buffer for {port}: expected {expected}, found {found}")
            }
            BackendError::Run { function, what } => write!(f, "`{function}` failed: {what}"),
        }
    }
}

impl std::error::Error for BackendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BackendError::Package(source) => source.source(),
            _ => None,
        }
    }
}
