//! A loaded bundle: the pipelines and heads that sessions run on, one pass at a time.

use std::ops::Range;
use std::sync::Arc;

use lone_bundle::{Bundle, GraphKind, ModelFacts, Role};
use lone_mil::{Model, StepProfile};

use crate::cache::{CacheLayout, Caches};
use crate::cover::first_size;
use crate::embeddings::EmbeddingTable;
use crate::head::Heads;
use crate::pipeline::{Pipeline, Surroundings};
use crate::{RequestError, RunError, Terms};

/// A bundle loaded on a backend. Sessions hold what they remember; this holds everything else.
pub struct Runtime {
    pub(crate) bundle: Bundle,
    /// One a graph of the bundle.
    pub(crate) models: Vec<Box<dyn Model>>,
    pub(crate) embeddings: EmbeddingTable,
    /// By context length, ascending.
    pub(crate) layouts: Vec<Arc<CacheLayout>>,
    /// By context length, then tokens, ascending.
    pub(crate) pipelines: Vec<Pipeline>,
    pub(crate) heads: Heads,
}

impl Runtime {
    /// What the bundle says of itself.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// What the model is.
    pub fn facts(&self) -> &ModelFacts {
        &self.bundle.model
    }

    /// The context lengths a session can have, ascending.
    pub fn contexts(&self) -> impl Iterator<Item = usize> {
        self.layouts.iter().map(|layout| layout.ctx)
    }

    /// The shapes loaded: role, tokens a pass and context length of each.
    pub fn shapes(&self) -> impl Iterator<Item = (Role, usize, usize)> {
        self.pipelines.iter().map(|pipeline| (pipeline.role, pipeline.tokens, pipeline.ctx))
    }

    /// Bytes of the buffers passes fill, which all sessions share; caches are a session's own. Masks count from the first
    /// pass of their shape on.
    pub fn buffer_bytes(&self) -> u64 {
        self.pipelines.iter().map(Pipeline::bytes).sum::<u64>() + self.heads.bytes()
    }

    /// The steps that a pass of `role` over `tokens` tokens at context `ctx` runs in, heads last; none where the backend
    /// does not say.
    pub fn profile(&self, role: Role, tokens: usize, ctx: usize) -> Vec<StepProfile> {
        let mut steps = Vec::new();
        for (graph, model) in self.bundle.graphs.iter().zip(&self.models) {
            let any_ctx = matches!(graph.kind, GraphKind::Head { .. });
            let functions =
                graph.functions.iter().filter(|function| (function.role, function.tokens) == (role, tokens));
            for function in functions.filter(|function| any_ctx || function.ctx == ctx) {
                steps.extend(model.profile(&function.name).unwrap_or_default());
            }
        }
        steps
    }

    /// Refuses token ids the model does not have.
    ///
    /// # Errors
    /// [`RequestError::UnknownToken`], naming the first.
    pub fn check_tokens(&self, tokens: &[u32]) -> Result<(), RequestError> {
        let vocab_size = self.bundle.model.vocab_size;
        match tokens.iter().position(|&id| id as usize >= vocab_size) {
            Some(index) => Err(RequestError::UnknownToken { index, id: tokens[index], vocab_size }),
            None => Ok(()),
        }
    }

    /// The pipeline of the first pass of the cheapest cover of `tokens` tokens at context `ctx`, and how many of them
    /// it takes.
    pub(crate) fn next_pass(&self, ctx: usize, tokens: usize) -> (usize, usize) {
        let at_ctx = || self.pipelines.iter().enumerate().filter(|(_, pipeline)| pipeline.ctx == ctx);
        let sizes: Vec<usize> = at_ctx().map(|(_, pipeline)| pipeline.tokens).collect();
        let size = first_size(&sizes, tokens);
        let (pipeline, _) = at_ctx().find(|(_, pipeline)| pipeline.tokens == size).expect("it has that size");
        (pipeline, size.min(tokens))
    }

    /// The pipeline that takes `tokens` at context `ctx` with the least padding, or else the widest.
    pub(crate) fn pipeline_for(&self, ctx: usize, tokens: usize) -> usize {
        let mut at_ctx = self.pipelines.iter().enumerate().filter(|(_, pipeline)| pipeline.ctx == ctx);
        let widest = self.pipelines.iter().rposition(|pipeline| pipeline.ctx == ctx);
        let fitting = at_ctx.find(|(_, pipeline)| pipeline.tokens >= tokens);
        fitting.map_or_else(|| widest.expect("every layout has a pipeline"), |(index, _)| index)
    }

    /// The widest pipeline that checks guesses at context `ctx`, and what doing so costs.
    pub(crate) fn verify(&self, ctx: usize) -> Option<(usize, Terms)> {
        let at_ctx = || self.pipelines.iter().enumerate().filter(|(_, pipeline)| pipeline.ctx == ctx);
        let (index, verify) = at_ctx().rfind(|(_, pipeline)| pipeline.role == Role::Verify)?;
        let decode = at_ctx().next().and_then(|(_, decode)| decode.pace.median());
        let cost = verify
            .pace
            .median()
            .zip(decode)
            .map(|(verify, decode)| verify.as_secs_f64() / decode.as_secs_f64().max(f64::MIN_POSITIVE));
        Some((index, Terms { most: verify.tokens - 1, cost }))
    }

    /// Runs pipeline number `pipeline`; see [`Pipeline::run`].
    pub(crate) fn run(
        &mut self,
        pipeline: usize,
        caches: &Caches,
        position: usize,
        tokens: &[u32],
    ) -> Result<(), RunError> {
        let mut surroundings =
            Surroundings { bundle: &self.bundle, models: &mut self.models, embeddings: &self.embeddings };
        self.pipelines[pipeline].run(&mut surroundings, caches, position, tokens)
    }

    /// Writes to `logits (columns.len(), V)` those of the given tokens of the last pass of pipeline `pipeline`.
    pub(crate) fn logits(
        &mut self,
        pipeline: usize,
        columns: Range<usize>,
        logits: &mut [f32],
    ) -> Result<(), RunError> {
        let mut surroundings =
            Surroundings { bundle: &self.bundle, models: &mut self.models, embeddings: &self.embeddings };
        self.heads.run(&mut surroundings, self.pipelines[pipeline].result(), columns, logits)
    }
}
