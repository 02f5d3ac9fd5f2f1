//! Weights times activations: what nearly all of the time goes into.

use std::fmt;
use std::sync::Arc;

use half::f16;
use lone_mil::{BlobFile, TensorType};
use memmap2::Mmap;

use super::{Access, Context, Run};
use crate::arena::Span;
use crate::isa::HighBytes;
use crate::kernels::{
    Blend, Columns, IndexBits, Int16Palettized, Palettized, RoundedPalettes, TwelveBits, Weights,
};

/// Rows that kernels take at a time, so that tasks begin where theirs do.
pub(crate) const ROWS_PER_BLOCK: usize = 16;

/// Tasks per thread: enough that a thread which loses its core for a while leaves its share to the others.
const TASKS_PER_THREAD: usize = 8;

/// Layers that read the same activations, one above the other: `out (M,S) = alpha * Σ_i w_i x_i` for the rows of each,
/// added to what `out` holds if `accumulate`.
pub(crate) struct Projection {
    pub(crate) layers: Vec<Layer>,
    /// S
    pub(crate) columns: usize,
    pub(crate) accumulate: bool,
    pub(crate) out: Span,
    /// What the kernel needs besides, where S > 1.
    pub(crate) scratch: Option<Span>,
}

/// One layer of a [`Projection`].
pub(crate) struct Layer {
    /// M, a multiple of sixteen but in the last layer.
    pub(crate) rows: usize,
    pub(crate) alpha: f32,
    pub(crate) parts: Vec<Part>,
}

/// One term.
pub(crate) struct Part {
    /// `(M,K)`
    pub(crate) weight: Weight,
    /// `(K,S)`
    pub(crate) x: Span,
}

/// A matrix of weights, used where it is.
#[derive(Clone)]
pub(crate) enum Weight {
    /// As they are.
    F16(Numbers),
    /// Indices into palettes.
    Palettized(Arc<PalettizedWeight>),
    /// Such in another form.
    TwelveBits(Arc<TwelveBitsWeight>),
    /// Such with palettes in 8 bits.
    Int16(Arc<PalettizedWeight>, Arc<RoundedPalettes>),
}

/// See [`Palettized`].
pub(crate) struct PalettizedWeight {
    pub(crate) bits: IndexBits,
    /// The record of the indices in the weight file, and their type.
    pub(crate) indices: (u64, TensorType),
    pub(crate) palettes: Numbers,
    pub(crate) group_rows: usize,
    /// Whether all entries are bf16 numbers too.
    pub(crate) short: bool,
    pub(crate) scales: Option<Numbers>,
}

/// See [`TwelveBits`].
pub(crate) struct TwelveBitsWeight {
    /// The width of the indices it was made of.
    pub(crate) bits: IndexBits,
    pub(crate) chunks: Mmap,
    pub(crate) high_bytes: Vec<HighBytes>,
    pub(crate) group_rows: usize,
    pub(crate) scales: Option<Numbers>,
}

/// Fp16 numbers.
#[derive(Clone)]
pub(crate) enum Numbers {
    /// The blob of type `ty` whose record is at `offset` of the weight file.
    Mapped { offset: u64, ty: TensorType },
    /// Held by the plan, for what the program wrote in place or computes from constants.
    Held(Arc<[f16]>),
}

impl Numbers {
    pub(crate) fn get<'a>(&'a self, blobs: &'a BlobFile) -> &'a [f16] {
        match self {
            Numbers::Mapped { offset, ty } => blobs.f16s(*offset, ty).expect("checked when it was compiled"),
            Numbers::Held(numbers) => numbers,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Numbers::Mapped { ty, .. } => ty.shape.elements() * size_of::<f16>(),
            Numbers::Held(numbers) => size_of_val(&**numbers),
        }
    }
}

impl PalettizedWeight {
    pub(crate) fn get<'a>(&'a self, blobs: &'a BlobFile) -> Palettized<'a> {
        let (offset, ty) = &self.indices;
        Palettized {
            bits: self.bits,
            indices: blobs.data(*offset, ty).expect("checked when it was compiled"),
            palettes: self.palettes.get(blobs),
            group_rows: self.group_rows,
            short: self.short,
            scales: self.scales.as_ref().map(|scales| scales.get(blobs)),
        }
    }
}

impl PalettizedWeight {
    fn bytes_without_palettes(&self) -> usize {
        let indices = self.indices.1.packed_bytes().unwrap_or(0);
        indices + self.scales.as_ref().map_or(0, Numbers::bytes)
    }
}

impl Weight {
    fn get<'a>(&'a self, blobs: &'a BlobFile) -> Weights<'a> {
        match self {
            Weight::F16(numbers) => Weights::F16(numbers.get(blobs)),
            Weight::Palettized(weight) => Weights::Palettized(weight.get(blobs)),
            Weight::TwelveBits(weight) => Weights::TwelveBits(TwelveBits {
                chunks: weight.chunks.as_chunks().0,
                high_bytes: &weight.high_bytes,
                group_rows: weight.group_rows,
                scales: weight.scales.as_ref().map(|scales| scales.get(blobs)),
            }),
            Weight::Int16(weight, rounded) => Weights::Int16(Int16Palettized {
                exact: weight.get(blobs),
                entries: &rounded.entries,
                steps: &rounded.steps,
            }),
        }
    }

    /// All that it takes up.
    fn bytes(&self) -> usize {
        match self {
            Weight::F16(numbers) => numbers.bytes(),
            Weight::Palettized(weight) => weight.bytes_without_palettes() + weight.palettes.bytes(),
            Weight::Int16(weight, rounded) => {
                let palettes =
                    size_of_val(rounded.entries.as_slice()) + size_of_val(rounded.steps.as_slice());
                weight.bytes_without_palettes() + palettes
            }
            Weight::TwelveBits(weight) => {
                let high_bytes = size_of_val(weight.high_bytes.as_slice());
                weight.chunks.len() + high_bytes + weight.scales.as_ref().map_or(0, Numbers::bytes)
            }
        }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weight::F16(_) => f.write_str("f16"),
            Weight::Palettized(weight) => weight.bits.fmt(f),
            Weight::TwelveBits(weight) => write!(f, "{} in 12 bits", weight.bits),
            Weight::Int16(weight, _) => write!(f, "{} as int16", weight.bits),
        }
    }
}

impl Run for Projection {
    const NAME: &'static str = "projection";

    fn run(&self, context: &mut Context<'_, '_, '_>) {
        let Context { blobs, kernels, pool, .. } = *context;
        if let Some(scratch) = self.scratch {
            let ([out, scratch], reads) = context.arena.borrow([self.out, scratch]);
            let mut rest = out;
            for layer in &self.layers {
                let (out, below) = rest.split_at_mut(layer.rows * self.columns);
                rest = below;
                for (part, blend) in layer.parts.iter().zip(self.blends(layer)) {
                    let x = Columns::dense(reads.f32s(part.x), self.columns);
                    kernels.matmul(pool, part.weight.get(blobs), x, out, blend, scratch);
                }
            }
            return;
        }
        let ([out], reads) = context.arena.borrow([self.out]);
        if let [Layer { parts, .. }] = self.layers.as_slice()
            && let [part] = parts.as_slice()
        {
            let blend = Blend { alpha: self.layers[0].alpha, accumulate: self.accumulate };
            kernels.matvec(pool, part.weight.get(blobs), reads.f32s(part.x), out, blend);
            return;
        }
        let rows = out.len().div_ceil(pool.threads() * TASKS_PER_THREAD).next_multiple_of(ROWS_PER_BLOCK);
        pool.for_each_chunk(out, rows, |task, out| {
            self.for_each_layer(task * rows, out, |layer, first_row, out| {
                for (part, blend) in layer.parts.iter().zip(self.blends(layer)) {
                    let x = reads.f32s(part.x);
                    kernels.matvec_rows(part.weight.get(blobs), first_row, x, out, blend);
                }
            });
        });
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut Span, Access)) {
        for part in self.layers.iter_mut().flat_map(|layer| &mut layer.parts) {
            visit(&mut part.x, Access::Read);
        }
        if self.accumulate {
            visit(&mut self.out.clone(), Access::Read);
        }
        visit(&mut self.out, Access::Write);
        if let Some(scratch) = &mut self.scratch {
            visit(scratch, Access::Write);
        }
    }

    fn weight_bytes(&self) -> usize {
        let parts = self.layers.iter().flat_map(|layer| &layer.parts);
        parts.map(|part| part.weight.bytes()).sum()
    }

    fn multiply_adds(&self) -> usize {
        self.layers.iter().flat_map(|layer| layer.parts.iter().map(|part| layer.rows * part.x.len)).sum()
    }
}

impl Projection {
    /// What becomes of the product of each part of `layer`.
    fn blends<'a>(&'a self, layer: &'a Layer) -> impl Iterator<Item = Blend> + 'a {
        (0..).map(|part| Blend { alpha: layer.alpha, accumulate: self.accumulate || part > 0 })
    }

    /// Calls `work` for each layer that has rows in `out`, which begins at row `first`: with its first row there, and
    /// the part of `out` that is its own.
    fn for_each_layer(&self, first: usize, out: &mut [f32], mut work: impl FnMut(&Layer, usize, &mut [f32])) {
        let mut layer_start = 0;
        for layer in &self.layers {
            let layer_end = layer_start + layer.rows;
            let (from, to) = (first.max(layer_start), (first + out.len()).min(layer_end));
            if from < to {
                work(layer, from - layer_start, &mut out[from - first..to - first]);
            }
            layer_start = layer_end;
        }
    }
}

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.out, if self.accumulate { "+=" } else { "=" })?;
        for (i, Layer { rows, alpha, parts }) in self.layers.iter().enumerate() {
            f.write_str(if i > 0 { "; " } else { " " })?;
            if *alpha != 1.0 {
                write!(f, "{alpha} * ")?;
            }
            for (i, part) in parts.iter().enumerate() {
                let plus = if i > 0 { " + " } else { "" };
                write!(f, "{plus}{}({rows},{}) {}", part.weight, part.x.len / self.columns, part.x)?;
            }
        }
        write!(f, " x {}", self.columns)
    }
}
