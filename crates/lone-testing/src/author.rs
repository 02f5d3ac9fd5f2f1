//! Writing a case: a function of one or few operations, its weights, what goes in and what must come out.

use half::f16;
use lone_mil::ops::Opset;
use lone_mil::{
    BlobLayout, BlobRef, BlobWriter, BuildError, DType, Function, FunctionBuilder, Shape, TensorType, ValueId,
};

use crate::{Kind, Tensor};

/// The function of every case: the only one of its package.
pub(crate) const FUNCTION: &str = "main";

/// One case of the suite.
#[derive(Debug, Clone)]
pub struct OpCase {
    /// A sentence on what is tested.
    pub name: String,
    /// What limits its exactness.
    pub kind: Kind,
    /// The function, called `main`.
    pub function: Function,
    /// Its blobs: type, number of elements, packed data.
    pub blobs: Vec<(DType, usize, Vec<u8>)>,
    /// One per input.
    pub inputs: Vec<Tensor>,
    /// One per output.
    pub expected: Vec<Tensor>,
}

/// A function in the making together with the blobs it needs.
#[derive(Debug)]
pub struct Author {
    /// The function.
    pub b: FunctionBuilder,
    layout: BlobLayout,
    blobs: Vec<(DType, usize, Vec<u8>)>,
}

impl Author {
    /// A blob of packed elements.
    ///
    /// # Panics
    /// If the data does not hold `elements` of `dtype`.
    pub fn blob(&mut self, dtype: DType, elements: usize, data: &[u8]) -> BlobRef {
        assert_eq!(dtype.packed_bytes(elements), Some(data.len()), "packed data of {elements} {dtype}");
        self.blobs.push((dtype, elements, data.to_vec()));
        self.layout.place(dtype, elements).expect("test blobs are small and storable")
    }

    /// A blob with its type, as the builder's `lut_to_dense` and others take it.
    pub fn typed(&mut self, dtype: DType, shape: impl Into<Shape>, data: &[u8]) -> (TensorType, BlobRef) {
        let ty = TensorType::new(dtype, shape);
        let blob = self.blob(dtype, ty.shape.elements(), data);
        (ty, blob)
    }

    /// The same of fp16 values.
    pub fn halves(&mut self, shape: impl Into<Shape>, values: &[f32]) -> (TensorType, BlobRef) {
        let data: Vec<u8> = values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
        self.typed(DType::F16, shape, &data)
    }

    /// An fp16 weight.
    ///
    /// # Errors
    /// As [`FunctionBuilder::weight`].
    pub fn weight(&mut self, shape: impl Into<Shape>, values: &[f32]) -> Result<ValueId, BuildError> {
        let (ty, blob) = self.halves(shape, values);
        let name = format!("weight_{}", self.blobs.len());
        self.b.weight(&name, ty, blob)
    }

    /// An operation with one result.
    ///
    /// # Errors
    /// As [`FunctionBuilder::op`].
    pub fn op(&mut self, name: &str, args: &[(&str, lone_mil::Given)]) -> Result<ValueId, BuildError> {
        Ok(self.b.op(name, args)?[0])
    }
}

/// The outputs of a function, from its inputs.
pub(crate) type Built = Result<Vec<ValueId>, BuildError>;

/// A case of opset CoreML8; `build` is handed one value per input.
pub(crate) fn case(
    name: impl Into<String>,
    kind: Kind,
    inputs: Vec<Tensor>,
    build: impl FnOnce(&mut Author, &[ValueId]) -> Built,
    expected: Vec<Tensor>,
) -> OpCase {
    case_of(Opset::CoreML8, name, kind, inputs, build, expected)
}

/// A case of another opset.
///
/// # Panics
/// If the function cannot be built, or does not give what is expected to be of the right type: both are faults of
/// the case.
pub(crate) fn case_of(
    opset: Opset,
    name: impl Into<String>,
    kind: Kind,
    inputs: Vec<Tensor>,
    build: impl FnOnce(&mut Author, &[ValueId]) -> Built,
    expected: Vec<Tensor>,
) -> OpCase {
    let name = name.into();
    let b = FunctionBuilder::with_opset(FUNCTION, opset);
    let mut author = Author { b, layout: BlobLayout::default(), blobs: Vec::new() };
    let ids = inputs.iter().enumerate().map(|(i, input)| author.b.input(&format!("x{i}"), input.ty()));
    let built = ids.collect::<Result<Vec<_>, _>>().and_then(|ids| build(&mut author, &ids));
    let outputs = built.unwrap_or_else(|error| panic!("{name}: {error}"));
    let types: Vec<TensorType> = outputs.iter().map(|&id| author.b.ty(id).clone()).collect();
    assert_eq!(types, expected.iter().map(Tensor::ty).collect::<Vec<_>>(), "{name}: types of the outputs");
    outputs.iter().try_for_each(|&id| author.b.output(id)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let function = author.b.finish().unwrap_or_else(|error| panic!("{name}: {error}"));
    OpCase { name, kind, function, blobs: author.blobs, inputs, expected }
}

impl OpCase {
    /// The bytes of its `weight.bin`.
    ///
    /// # Panics
    /// Never for blobs that an [`Author`] took.
    pub fn weights(&self) -> Vec<u8> {
        let mut writer = BlobWriter::new(Vec::new(), self.blobs.len() as u32).expect("memory takes all");
        for (dtype, elements, data) in &self.blobs {
            writer.put(*dtype, *elements, data).expect("the author checked it");
        }
        writer.finish().expect("as many blobs as declared")
    }
}
