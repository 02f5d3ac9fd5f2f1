//! One operation as a program of its own, run by the reference interpreter: what constants are computed with when a
//! function is compiled, and what operations without a step of their own fall back on.
//!
//! Ports of programs are fp16, fp32 or int32; other types pass through casts.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use half::f16;
use lone_mil::interpret::Interpreted;
use lone_mil::ops::Opset;
use lone_mil::package::{Metadata, Package};
use lone_mil::{
    Arg, BackendError, BlobError, BlobFile, BlobLayout, BlobWriter, BuildError, DType, Function,
    FunctionBuilder, Given, Interpreter, Literal, LoadOptions, Model, Op, Payload, Program, Reference,
    TensorMut, TensorRef, TensorType, ValueId,
};

use super::package_error;

/// What the program is called, and its one function.
const NAME: &str = "isolated";

/// An operation with one result, its constant arguments filled in.
pub(crate) struct Isolated {
    model: Mutex<Interpreted>,
    /// The types of what it takes.
    pub(crate) inputs: Vec<TensorType>,
    /// The type in which it gives its result.
    pub(crate) output: TensorType,
    /// The type of the result itself.
    result: TensorType,
}

/// What an argument is.
pub(crate) enum Known {
    /// A constant whose bytes are in place.
    Constant(Literal),
    /// Something computed, of this type.
    Computed(TensorType),
}

impl Isolated {
    /// Isolates `op` of `function`. What `known` says to be computed becomes an input; these are returned in order.
    ///
    /// # Errors
    /// [`BackendError`] of the interpreter, for what it cannot run either.
    pub(crate) fn new(
        function: &Function,
        op: &Op,
        known: impl Fn(&Arg) -> Result<Vec<Known>, BackendError>,
    ) -> Result<(Self, Vec<ValueId>), BackendError> {
        let built = |error: BuildError| BackendError::Unsupported {
            place: format!("function `{}`, operation `{}`", function.name, op.name),
            what: error.to_string(),
        };
        let opset = Opset::from_name(&function.opset).unwrap_or(Opset::CoreML8);
        let mut writer = Writer::new(opset);
        let mut args: Vec<(&str, Given)> = Vec::new();
        for (param, arg) in op.spec.params.iter().zip(&op.args) {
            if let Some(arg) = arg {
                args.push((param.name, writer.given(arg, known(arg)?).map_err(built)?));
            }
        }
        let result = function.value(op.outputs[0]).ty.tensor().clone();
        let output = TensorType::new(port_type(result.dtype), result.shape.clone());
        let builder = &mut writer.builder;
        let computed = builder.op(op.spec.name, &args).map_err(built)?[0];
        let computed = builder.cast(computed, output.dtype).map_err(built)?;
        builder.output(computed).map_err(built)?;

        let Writer { builder, inputs, layout, weights } = writer;
        let blobs = blob_file(layout, &weights).map_err(package_error)?;
        let (ids, inputs) = inputs.into_iter().unzip();
        let functions = vec![builder.finish().map_err(built)?];
        let program = Program { functions, default_function: NAME.into() };
        let package = Package { program, blobs, metadata: Metadata::default() };
        let model = Interpreter::<Reference>::new().prepare(package, &LoadOptions::default())?;
        Ok((Isolated { model: Mutex::new(model), inputs, output, result }, ids))
    }

    /// Computes the result from `inputs`, one a type of [`Isolated::inputs`].
    ///
    /// # Errors
    /// [`BackendError`] of the interpreter, such as for an index that is out of range.
    pub(crate) fn run(&self, inputs: &[TensorRef<'_>], output: TensorMut<'_>) -> Result<(), BackendError> {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        model.run(NAME, inputs, &mut [output])
    }

    /// The result of an operation all of whose arguments are constants, as a constant.
    ///
    /// # Errors
    /// As [`Isolated::run`].
    pub(crate) fn literal(&self) -> Result<Literal, BackendError> {
        let elements = self.result.shape.elements();
        let bytes: Vec<u8> = match self.output.dtype {
            DType::F16 => {
                let mut halves = vec![f16::ZERO; elements];
                self.run(&[], TensorMut::F16(&mut halves))?;
                halves.into_iter().flat_map(f16::to_le_bytes).collect()
            }
            DType::F32 => {
                let mut floats = vec![0.0; elements];
                self.run(&[], TensorMut::F32(&mut floats))?;
                floats.into_iter().flat_map(f32::to_le_bytes).collect()
            }
            _ => {
                let mut ints = vec![0i32; elements];
                self.run(&[], TensorMut::I32(&mut ints))?;
                let bytes = self.result.dtype.bits() as usize / 8;
                ints.into_iter().flat_map(|int| int.to_le_bytes().into_iter().take(bytes)).collect()
            }
        };
        Ok(Literal::from_bytes(self.result.clone(), &bytes))
    }
}

impl PartialEq for Isolated {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for Isolated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Isolated({:?} -> {})", self.inputs, self.output)
    }
}

/// The type by which values of `dtype` pass a port.
fn port_type(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::F32 => dtype,
        _ => DType::I32,
    }
}

/// The weight file of blobs placed by `layout`.
fn blob_file(layout: BlobLayout, weights: &[Literal]) -> Result<BlobFile, BlobError> {
    let mut writer = BlobWriter::new(Vec::new(), layout.count())?;
    for Literal { ty, payload } in weights {
        if let Payload::Bytes(bytes) = payload {
            writer.put(ty.dtype, ty.shape.elements(), bytes)?;
        }
    }
    BlobFile::from_bytes(NAME, &writer.finish()?)
}

/// Writes the function that holds nothing but one operation.
struct Writer {
    builder: FunctionBuilder,
    inputs: Vec<(ValueId, TensorType)>,
    layout: BlobLayout,
    weights: Vec<Literal>,
}

impl Writer {
    fn new(opset: Opset) -> Self {
        Writer {
            builder: FunctionBuilder::with_opset(NAME, opset),
            inputs: Vec::new(),
            layout: BlobLayout::default(),
            weights: Vec::new(),
        }
    }

    fn given(&mut self, arg: &Arg, known: Vec<Known>) -> Result<Given, BuildError> {
        let ids: &[ValueId] = match arg {
            Arg::Value(id) => std::slice::from_ref(id),
            Arg::Values(ids) => ids,
            Arg::Literal(_) => &[],
        };
        let mut values = Vec::with_capacity(ids.len());
        for (i, known) in known.into_iter().enumerate() {
            values.push(match known {
                Known::Constant(literal) if ids.is_empty() => return Ok(Given::Literal(literal)),
                Known::Constant(literal) => self.constant(literal)?,
                Known::Computed(ty) => self.input(ids[i], ty)?,
            });
        }
        Ok(match arg {
            Arg::Values(_) => Given::Values(values),
            Arg::Value(_) | Arg::Literal(_) => Given::Value(values[0]),
        })
    }

    /// A constant, in the weight file where a program cannot hold it.
    fn constant(&mut self, literal: Literal) -> Result<ValueId, BuildError> {
        let ty = literal.ty.clone();
        if ty.dtype != DType::F16 || ty.shape.is_empty() {
            return self.builder.constant(literal);
        }
        let blob = self.layout.place(ty.dtype, ty.shape.elements()).expect("as large as where it comes from");
        self.weights.push(literal);
        self.builder.weight(&format!("weight_{}", self.weights.len()), ty, blob)
    }

    /// A value of type `ty` that comes in through a port.
    fn input(&mut self, id: ValueId, ty: TensorType) -> Result<ValueId, BuildError> {
        let port = TensorType::new(port_type(ty.dtype), ty.shape);
        let input = self.builder.input(&format!("in_{}", self.inputs.len()), port.clone())?;
        self.inputs.push((id, port.clone()));
        if port.dtype == ty.dtype { Ok(input) } else { self.builder.cast(input, ty.dtype) }
    }
}
