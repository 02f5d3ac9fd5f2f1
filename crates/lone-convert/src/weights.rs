//! The weights of one package: where each blob lies, and which elements of the checkpoint become it.
//!
//! A blob is a rectangle of a tensor, times a power of two, in fp16. Functions refer to blobs by [`Weight`]; the
//! writer goes through the [`Source`]s in the same order.

use std::ops::Range;

use lone_lfm::Tensor;
use lone_mil::{BlobLayout, BlobRef, BuildError, DType, FunctionBuilder, TensorType, ValueId};

use crate::Note;
use crate::precision::{Place, Precision, SCALE};
use crate::survey::Survey;

/// The elements of a blob, in the checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Source<'c> {
    pub(crate) tensor: Tensor<'c>,
    pub(crate) rows: Range<usize>,
    /// Of each row.
    pub(crate) columns: Range<usize>,
    pub(crate) scale: f32,
}

impl<'c> Source<'c> {
    /// All of a tensor as it is.
    pub(crate) fn whole(tensor: Tensor<'c>) -> Self {
        Source { tensor, rows: 0..tensor.rows(), columns: 0..tensor.row_len(), scale: 1.0 }
    }

    pub(crate) fn elements(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// A weight as every function of its package sees it.
#[derive(Debug, Clone)]
pub(crate) struct Weight {
    name: String,
    ty: TensorType,
    blob: BlobRef,
}

impl Weight {
    pub(crate) fn new(name: String, ty: TensorType, blob: BlobRef) -> Self {
        Weight { name, ty, blob }
    }

    /// The weight as a value of the function that `b` builds.
    pub(crate) fn value(&self, b: &mut FunctionBuilder) -> Result<ValueId, BuildError> {
        b.weight(&self.name, self.ty.clone(), self.blob)
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.ty.shape
    }
}

/// The weights of a package, placed one after the other as its modules are loaded.
#[derive(Debug)]
pub(crate) struct PackageWeights<'c> {
    survey: &'c Survey,
    precision: Precision,
    layout: BlobLayout,
    pub(crate) sources: Vec<Source<'c>>,
    pub(crate) notes: Vec<Note>,
}

impl<'c> PackageWeights<'c> {
    pub(crate) fn new(survey: &'c Survey, precision: Precision) -> Self {
        PackageWeights {
            survey,
            precision,
            layout: BlobLayout::default(),
            sources: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// Size of the `weight.bin` so far.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.layout.file_bytes()
    }

    /// A vector of the checkpoint along `axis` of a shape of rank 4 whose other dimensions are 1.
    pub(crate) fn vector(&mut self, tensor: Tensor<'c>, axis: usize) -> Weight {
        let mut shape = [1; 4];
        shape[axis] = tensor.len();
        self.place(Source::whole(tensor), shape, "")
    }

    /// One blob a tap of a depthwise kernel (D,1,K): K weights (1,D,1,1).
    pub(crate) fn taps(&mut self, kernel: Tensor<'c>) -> Vec<Weight> {
        let tap = |k| Source { columns: k..k + 1, ..Source::whole(kernel) };
        (0..kernel.row_len())
            .map(|k| self.place(tap(k), [1, kernel.rows(), 1, 1], &format!("_tap{k}")))
            .collect()
    }

    /// Rows of a matrix (O,C) as kernels (O,C',1,1), one for each of the parts its sum is taken in, and whether they
    /// hold 16 times the matrix.
    pub(crate) fn matrix(
        &mut self,
        matrix: Tensor<'c>,
        rows: Range<usize>,
        place: Place,
    ) -> (Vec<Weight>, bool) {
        let width = matrix.row_len();
        let scale = self.scale(&matrix, width);
        let parts = crate::extents::even_spans(width, self.precision.parts(place, width));
        let weights = parts.iter().enumerate().map(|(i, part)| {
            let source =
                Source { tensor: matrix, rows: rows.clone(), columns: part.start..part.end(), scale };
            let suffix = if parts.len() > 1 { format!("_part{i}") } else { String::new() };
            self.place(source, [rows.len(), part.count, 1, 1], &suffix)
        });
        (weights.collect(), scale != 1.0)
    }

    fn scale(&mut self, matrix: &Tensor<'c>, width: usize) -> f32 {
        let scale = self.precision.scale(width);
        if self.survey.bears(matrix, scale) {
            return scale;
        }
        debug_assert_eq!(scale, SCALE, "what fp16 cannot hold as it is was refused by the survey");
        self.notes.push(Note::Unscaled { tensor: matrix.name().to_owned() });
        1.0
    }

    fn place(&mut self, source: Source<'c>, shape: [usize; 4], suffix: &str) -> Weight {
        let blob = self.layout.place(DType::F16, source.elements());
        let blob = blob.expect("a mapped tensor has fewer bytes than the address space");
        let name = format!("{}{suffix}", value_name(source.tensor.name()));
        self.sources.push(source);
        Weight::new(name, TensorType::f16(shape), blob)
    }
}

/// What a tensor is called in a program: `model.layers.3.ffn_norm.weight` becomes `layers_3_ffn_norm`.
fn value_name(tensor: &str) -> String {
    let name = tensor.strip_prefix("model.").unwrap_or(tensor);
    name.strip_suffix(".weight").unwrap_or(name).replace('.', "_")
}
