//! The weights of one package: where each blob lies, and which elements of the checkpoint become it.
//!
//! A blob is a rectangle of a tensor, times a power of two, in fp16, or the indices or tables of one that is
//! palettized. Functions refer to blobs by [`Weight`]; the writer goes through the [`Source`]s in the same order.

use std::collections::BTreeMap;
use std::ops::Range;

use lone_lfm::Tensor;
use lone_mil::{BlobLayout, BlobRef, BuildError, DType, FunctionBuilder, TensorType, ValueId};

use crate::Note;
use crate::palette::{Matrix, PaletteFormat, WeightPrecision};
use crate::precision::{Place, Precision, SCALE};
use crate::survey::Survey;

/// Elements of the checkpoint that become a blob of fp16.
#[derive(Debug, Clone)]
pub(crate) struct Rectangle<'c> {
    pub(crate) tensor: Tensor<'c>,
    pub(crate) rows: Range<usize>,
    /// Of each row.
    pub(crate) columns: Range<usize>,
    pub(crate) scale: f32,
}

impl<'c> Rectangle<'c> {
    /// All of a tensor as it is.
    pub(crate) fn whole(tensor: Tensor<'c>) -> Self {
        Rectangle { tensor, rows: 0..tensor.rows(), columns: 0..tensor.row_len(), scale: 1.0 }
    }

    pub(crate) fn elements(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// Elements of the checkpoint and the blobs they become.
#[derive(Debug, Clone)]
pub(crate) enum Source<'c> {
    /// One blob.
    Plain(Rectangle<'c>),
    /// For each part of the columns, a blob of indices and one of tables.
    Palettized(Matrix<'c>),
}

impl Source<'_> {
    pub(crate) fn is_palettized(&self) -> bool {
        matches!(self, Source::Palettized(_))
    }

    /// Blobs it becomes.
    pub(crate) fn blobs(&self) -> usize {
        match self {
            Source::Plain(_) => 1,
            Source::Palettized(matrix) => 2 * matrix.parts.len(),
        }
    }
}

/// A weight as every function of its package sees it.
#[derive(Debug, Clone)]
pub(crate) struct Weight {
    name: String,
    ty: TensorType,
    stored: Stored,
}

#[derive(Debug, Clone)]
enum Stored {
    Plain(BlobRef),
    Palettized { indices: (TensorType, BlobRef), tables: (TensorType, BlobRef) },
}

impl Weight {
    /// A weight stored as it is.
    pub(crate) fn plain(name: String, ty: TensorType, blob: BlobRef) -> Self {
        Weight { name, ty, stored: Stored::Plain(blob) }
    }

    /// The weight as a value of the function that `b` builds.
    pub(crate) fn value(&self, b: &mut FunctionBuilder) -> Result<ValueId, BuildError> {
        match &self.stored {
            Stored::Plain(blob) => b.weight(&self.name, self.ty.clone(), *blob),
            Stored::Palettized { indices, tables } => {
                b.lut_to_dense(&self.name, indices.clone(), tables.clone())
            }
        }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.ty.shape
    }
}

/// How the matrices of a bundle are stored.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    pub(crate) precision: WeightPrecision,
    /// What is stored otherwise, by tensor.
    pub(crate) exceptions: BTreeMap<String, WeightPrecision>,
    /// Rows a table, 0 for all of a matrix; `None` for what suits the precision.
    pub(crate) group: Option<usize>,
}

impl Storage {
    /// All matrices alike.
    pub(crate) fn uniform(precision: WeightPrecision, group: Option<usize>) -> Self {
        Storage { precision, exceptions: BTreeMap::new(), group }
    }
}

/// The weights of a package, placed one after the other as its modules are loaded.
#[derive(Debug)]
pub(crate) struct PackageWeights<'c> {
    survey: &'c Survey,
    precision: Precision,
    storage: Storage,
    layout: BlobLayout,
    pub(crate) sources: Vec<Source<'c>>,
    pub(crate) notes: Vec<Note>,
}

impl<'c> PackageWeights<'c> {
    pub(crate) fn new(survey: &'c Survey, precision: Precision, storage: Storage) -> Self {
        PackageWeights {
            survey,
            precision,
            storage,
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
        self.place(Rectangle::whole(tensor), shape, "")
    }

    /// One blob a tap of a depthwise kernel (D,1,K): K weights (1,D,1,1).
    pub(crate) fn taps(&mut self, kernel: Tensor<'c>) -> Vec<Weight> {
        let tap = |k| Rectangle { columns: k..k + 1, ..Rectangle::whole(kernel) };
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
        let spans = crate::extents::even_spans(width, self.precision.parts(place, width));
        let parts: Vec<Range<usize>> = spans.iter().map(|span| span.start..span.end()).collect();
        let weights = match self.palettes(&matrix, rows.len()) {
            Some(format) => self.place_palettized(Matrix { tensor: matrix, rows, parts, scale, format }),
            None => (parts.iter().enumerate())
                .map(|(part, columns)| {
                    let source =
                        Rectangle { tensor: matrix, rows: rows.clone(), columns: columns.clone(), scale };
                    let shape = [rows.len(), columns.len(), 1, 1];
                    self.place(source, shape, &part_suffix(part, parts.len()))
                })
                .collect(),
        };
        (weights, scale != 1.0)
    }

    /// How `rows` rows of a matrix are palettized, if they are.
    fn palettes(&mut self, matrix: &Tensor<'c>, rows: usize) -> Option<PaletteFormat> {
        let precision = self.storage.exceptions.get(matrix.name()).copied().unwrap_or(self.storage.precision);
        let group = self.storage.group.unwrap_or_else(|| precision.usual_group());
        let format = PaletteFormat::new(precision, group, rows)?;
        if format.group_rows < group.min(rows) {
            let tensor = matrix.name().to_owned();
            self.notes.push(Note::SmallerGroups { tensor, rows, asked: group, used: format.group_rows });
        }
        Some(format)
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

    fn place(&mut self, source: Rectangle<'c>, shape: [usize; 4], suffix: &str) -> Weight {
        let name = format!("{}{suffix}", value_name(source.tensor.name()));
        let blob = self.blob(DType::F16, source.elements());
        self.sources.push(Source::Plain(source));
        Weight::plain(name, TensorType::f16(shape), blob)
    }

    /// For each part indices (O,C',1,1) and tables (O/group,1,1,1,entries,1).
    fn place_palettized(&mut self, matrix: Matrix<'c>) -> Vec<Weight> {
        let (rows, format) = (matrix.rows.len(), matrix.format);
        let tables = TensorType::f16([format.tables(rows), 1, 1, 1, format.entries(), 1]);
        let name = value_name(matrix.tensor.name());
        let weights = matrix.parts.iter().enumerate().map(|(part, columns)| {
            let shape = [rows, columns.len(), 1, 1];
            let indices = TensorType::new(format.indices, shape);
            let blob = self.blob(format.indices, indices.shape.elements());
            let stored = Stored::Palettized {
                indices: (indices, blob),
                tables: (tables.clone(), self.blob(DType::F16, tables.shape.elements())),
            };
            let name = format!("{name}{}", part_suffix(part, matrix.parts.len()));
            Weight { name, ty: TensorType::f16(shape), stored }
        });
        let weights = weights.collect();
        self.sources.push(Source::Palettized(matrix));
        weights
    }

    fn blob(&mut self, dtype: DType, elements: usize) -> BlobRef {
        let blob = self.layout.place(dtype, elements);
        blob.expect("a mapped tensor has fewer bytes than the address space")
    }
}

fn part_suffix(part: usize, parts: usize) -> String {
    if parts > 1 { format!("_part{part}") } else { String::new() }
}

/// What a tensor is called in a program: `model.layers.3.ffn_norm.weight` becomes `layers_3_ffn_norm`.
fn value_name(tensor: &str) -> String {
    let name = tensor.strip_prefix("model.").unwrap_or(tensor);
    name.strip_suffix(".weight").unwrap_or(name).replace('.', "_")
}
