//! All chunks at one shape: tokens in, final hidden states and new cache rows out.
//!
//! Every buffer a pass fills or is told by lies here, one set a shape, and every session that runs at this shape
//! uses them in turn. Caches alone are the session's, read where they lie.

use half::f16;
use lone_bundle::{Binding, Bundle, Role, Rope};
use lone_mil::{BackendError, Model, Signature, TensorMut, TensorRef};

use crate::cache::{CacheLayout, Caches};
use crate::contract::Contract;
use crate::embeddings::EmbeddingTable;
use crate::mask::{Mask, MaskShape};
use crate::rotation::Rotation;
use crate::speculation::Pace;
use crate::{LoadError, RunError, buffer::Buffer};

/// A chunk's function, loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedFunction<'a> {
    pub(crate) contract: Contract<'a>,
    pub(crate) signature: &'a Signature,
    /// Index of its graph, and of its model.
    pub(crate) graph: usize,
}

/// The chunks at one shape, in layer order.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) role: Role,
    /// S.
    pub(crate) tokens: usize,
    pub(crate) ctx: usize,
    /// Of passes with logits.
    pub(crate) pace: Pace,
    /// Embeddings, `(1, D, 1, S)`.
    hidden: Buffer,
    masks: Vec<Mask>,
    rotations: Vec<Rotation>,
    stages: Vec<Stage>,
}

/// One chunk's function with what goes in and the buffers that come out.
#[derive(Debug)]
struct Stage {
    graph: usize,
    function: String,
    inputs: Vec<Source>,
    /// In signature order.
    outputs: Vec<Buffer>,
    /// Which output is the hidden state.
    hidden: usize,
    /// Output and the cache it renews.
    renewals: Vec<(usize, usize)>,
    /// Layer and the output that shows its result.
    layers: Vec<(usize, usize)>,
}

/// Where an input comes from; indices into the pipeline's own lists, or into the session's caches.
#[derive(Debug, Clone, Copy)]
enum Source {
    Hidden,
    Cos(usize),
    Sin(usize),
    Mask(usize),
    Cache { cache: usize, segment: usize },
}

/// What a pass needs of the runtime besides the pipeline.
pub(crate) struct Surroundings<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) models: &'a mut [Box<dyn Model>],
    pub(crate) embeddings: &'a EmbeddingTable,
}

impl Pipeline {
    /// The pipeline of `functions`, one a chunk, whose contracts hold.
    pub(crate) fn new(functions: &[LoadedFunction<'_>], layout: &CacheLayout) -> Result<Self, LoadError> {
        let first = functions.first().expect("a bundle has a chunk").contract;
        let (bundle, shape) = (first.bundle, first.function);
        let mut pipeline = Pipeline {
            role: shape.role,
            tokens: shape.tokens,
            ctx: shape.ctx,
            pace: Pace::default(),
            hidden: Buffer::zeroed(bundle.model.hidden_size * shape.tokens)?,
            masks: Vec::new(),
            rotations: Vec::new(),
            stages: Vec::new(),
        };
        for function in functions {
            let stage = pipeline.stage(function, layout)?;
            pipeline.stages.push(stage);
        }
        Ok(pipeline)
    }

    fn stage(&mut self, loaded: &LoadedFunction<'_>, layout: &CacheLayout) -> Result<Stage, LoadError> {
        let Contract { bundle, function, .. } = loaded.contract;
        let inputs = function.inputs.iter().map(|port| self.source(bundle, layout, port.binding));
        let ports = &loaded.signature.outputs;
        let outputs = ports.iter().map(|port| Buffer::zeroed(port.ty.shape.elements()));
        let bindings = function.outputs.iter().map(|port| port.binding).enumerate();
        let renewals = bindings.clone().filter_map(|(output, binding)| match binding {
            Binding::NewRows { cache } | Binding::Window { cache } => Some((output, cache)),
            _ => None,
        });
        let shown = function.layer_outputs.iter().filter_map(|layer| {
            let output = ports.iter().position(|port| port.name == layer.value)?;
            Some((layer.layer, output))
        });
        let mut hidden = bindings.clone().filter(|(_, binding)| *binding == Binding::Hidden);
        Ok(Stage {
            graph: loaded.graph,
            function: function.name.clone(),
            inputs: inputs.collect::<Result<_, _>>()?,
            outputs: outputs.collect::<Result<_, _>>()?,
            hidden: hidden.next().expect("the contract holds: one hidden output").0,
            renewals: renewals.collect(),
            layers: shown.collect(),
        })
    }

    fn source(
        &mut self,
        bundle: &Bundle,
        layout: &CacheLayout,
        binding: Binding,
    ) -> Result<Source, RunError> {
        Ok(match binding {
            Binding::Hidden => Source::Hidden,
            Binding::Cos { rope } => Source::Cos(self.rotation(rope, &bundle.ropes)?),
            Binding::Sin { rope } => Source::Sin(self.rotation(rope, &bundle.ropes)?),
            Binding::Mask { rows, window, columns } => {
                let (tokens, row_count) = (self.tokens, rows.count(self.ctx));
                Source::Mask(self.mask(MaskShape { tokens, rows, row_count, window, columns }))
            }
            Binding::Cache { cache, rows } => {
                let segments = &layout.caches[cache].segments;
                let segment = segments.iter().position(|segment| *segment == rows);
                Source::Cache { cache, segment: segment.expect("the layout is made of these inputs") }
            }
            Binding::NewRows { .. } | Binding::Window { .. } | Binding::Logits => {
                unreachable!("the contract holds: inputs are bound to inputs")
            }
        })
    }

    fn rotation(&mut self, rope: usize, ropes: &[Rope]) -> Result<usize, RunError> {
        if let Some(index) = self.rotations.iter().position(|rotation| rotation.rope() == rope) {
            return Ok(index);
        }
        self.rotations.push(Rotation::new(rope, &ropes[rope], self.tokens)?);
        Ok(self.rotations.len() - 1)
    }

    fn mask(&mut self, shape: MaskShape) -> usize {
        let known = self.masks.iter().position(|mask| *mask.shape() == shape);
        known.unwrap_or_else(|| {
            self.masks.push(Mask::new(shape));
            self.masks.len() - 1
        })
    }

    /// Runs `tokens` (at least one, at most S) at positions from `position` on; writes no cache. The first run takes the
    /// memory of the masks.
    pub(crate) fn run(
        &mut self,
        surroundings: &mut Surroundings<'_>,
        caches: &Caches,
        position: usize,
        tokens: &[u32],
    ) -> Result<(), RunError> {
        surroundings.embeddings.gather(tokens, &mut self.hidden);
        for mask in &mut self.masks {
            mask.move_to(position)?;
        }
        for rotation in &mut self.rotations {
            rotation.move_to(position, &surroundings.bundle.ropes[rotation.rope()]);
        }
        for i in 0..self.stages.len() {
            let (before, rest) = self.stages.split_at_mut(i);
            let stage = &mut rest[0];
            let hidden = before.last().map_or(&self.hidden, Stage::hidden);
            let inputs: Vec<_> = stage
                .inputs
                .iter()
                .map(|source| match *source {
                    Source::Hidden => hidden,
                    Source::Cos(index) => self.rotations[index].cos(),
                    Source::Sin(index) => self.rotations[index].sin(),
                    Source::Mask(index) => self.masks[index].data(),
                    Source::Cache { cache, segment } => caches.segment(cache, segment),
                })
                .map(Buffer::as_ref)
                .collect();
            let model = surroundings.models[stage.graph].as_mut();
            stage.run(model, &inputs).map_err(|source| RunError::Backend {
                package: surroundings.bundle.graphs[stage.graph].package.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Writes what the last run returned for its first `accepted` tokens; it was at `position`.
    pub(crate) fn commit(&self, caches: &mut Caches, position: usize, accepted: usize) {
        for (cache, new) in self.renewals() {
            caches.accept(cache, position, new, accepted);
        }
    }

    /// What the last run returned for each cache: `(1, G, S, d)` for K/V and `(1, D, K-1+S, 1)` for a convolution.
    pub(crate) fn renewals(&self) -> impl Iterator<Item = (usize, &[f16])> {
        self.stages.iter().flat_map(|stage| {
            stage.renewals.iter().map(|&(output, cache)| (cache, &stage.outputs[output][..]))
        })
    }

    /// Final hidden states of the last run, after the final norm, `(1, D, 1, S)`.
    pub(crate) fn result(&self) -> &[f16] {
        match self.stages.last() {
            Some(stage) => stage.hidden(),
            None => &self.hidden,
        }
    }

    /// The embeddings the last run began with, `(1, D, 1, S)`.
    pub(crate) fn embedded(&self) -> &[f16] {
        &self.hidden
    }

    /// The outputs of the layers that are kept visible, by layer, `(1, D, 1, S)` each.
    pub(crate) fn layer_outputs(&self) -> impl Iterator<Item = (usize, &[f16])> {
        self.stages
            .iter()
            .flat_map(|stage| stage.layers.iter().map(|&(layer, output)| (layer, &stage.outputs[output][..])))
    }

    /// Bytes of all buffers, of masks those that were needed so far.
    pub(crate) fn bytes(&self) -> u64 {
        let outputs = self.stages.iter().flat_map(|stage| &stage.outputs);
        let masks = self.masks.iter().map(Mask::data);
        let rotations = self.rotations.iter().flat_map(|rotation| [rotation.cos(), rotation.sin()]);
        outputs.chain(masks).chain(rotations).chain([&self.hidden]).map(Buffer::bytes).sum()
    }
}

impl Stage {
    fn hidden(&self) -> &Buffer {
        &self.outputs[self.hidden]
    }

    fn run(&mut self, model: &mut dyn Model, inputs: &[TensorRef<'_>]) -> Result<(), BackendError> {
        let mut outputs: Vec<TensorMut<'_>> = self.outputs.iter_mut().map(Buffer::as_mut).collect();
        model.run(&self.function, inputs, &mut outputs)
    }
}
