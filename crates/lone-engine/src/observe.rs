//! Every position's logits and every layer's output, for whoever compares a bundle with its checkpoint.

use half::f16;
use lone_bundle::Role;

use crate::pipeline::Pipeline;
use crate::{EngineError, RequestError, Runtime, Session};

/// What the model made of one token.
pub struct Observed<'a> {
    /// Where the token stands.
    pub position: usize,
    /// Logits of what follows it, `(V)`.
    pub logits: &'a [f32],
    pipeline: &'a Pipeline,
    column: usize,
}

impl Session {
    /// Appends `tokens` by passes of `role`, or of the best fitting shapes when absent, and calls `visit` with each
    /// token in order. Layers are there if the runtime was loaded with `keep_layer_outputs`.
    ///
    /// # Errors
    /// As [`Session::extend`]; [`RequestError::Setting`] for a role that is not loaded.
    pub fn observe(
        &mut self,
        runtime: &mut Runtime,
        role: Option<Role>,
        tokens: &[u32],
        visit: impl FnMut(&Observed<'_>),
    ) -> Result<(), EngineError> {
        let choose = |runtime: &Runtime, ctx, tokens| match role {
            None => Ok(runtime.pipeline_for(ctx, tokens)),
            Some(role) => runtime.pipeline_of(ctx, role, None),
        };
        self.observe_on(runtime, choose, tokens, visit)
    }

    /// The same by passes of `shape`: its role, and how many tokens a pass has.
    ///
    /// # Errors
    /// As [`Session::observe`], for a shape that is not loaded too.
    pub fn observe_by(
        &mut self,
        runtime: &mut Runtime,
        (role, pass_tokens): (Role, usize),
        tokens: &[u32],
        visit: impl FnMut(&Observed<'_>),
    ) -> Result<(), EngineError> {
        let choose = |runtime: &Runtime, ctx, _| runtime.pipeline_of(ctx, role, Some(pass_tokens));
        self.observe_on(runtime, choose, tokens, visit)
    }

    /// By the pipelines that `choose` names, given the context and how many tokens are left.
    fn observe_on(
        &mut self,
        runtime: &mut Runtime,
        choose: impl Fn(&Runtime, usize, usize) -> Result<usize, RequestError>,
        tokens: &[u32],
        mut visit: impl FnMut(&Observed<'_>),
    ) -> Result<(), EngineError> {
        let mut rest = tokens;
        let mut logits = Vec::new();
        while !rest.is_empty() {
            let mut pipeline = choose(runtime, self.rung(), rest.len())?;
            let (block, after) = rest.split_at(rest.len().min(runtime.pipelines[pipeline].tokens));
            if self.position() + block.len() > self.rung() && block.len() <= self.remaining() {
                self.make_room(block.len())?;
                pipeline = choose(runtime, self.rung(), block.len())?;
            }
            let vocab_size = runtime.facts().vocab_size;
            logits.resize(block.len() * vocab_size, 0.0);
            let position = self.position();
            let mut pass = self.pass_on(runtime, pipeline, block)?;
            pass.logits(0..block.len(), &mut logits)?;
            for (column, logits) in logits.chunks_exact(vocab_size).enumerate() {
                visit(&Observed { position: position + column, logits, pipeline: pass.pipeline(), column });
            }
            pass.commit(block.len());
            rest = after;
        }
        Ok(())
    }
}

impl Runtime {
    /// The first of `role`, of `tokens` tokens a pass if that is said.
    fn pipeline_of(&self, ctx: usize, role: Role, tokens: Option<usize>) -> Result<usize, RequestError> {
        let is = |pipeline: &Pipeline| {
            (pipeline.ctx, pipeline.role) == (ctx, role)
                && tokens.is_none_or(|tokens| tokens == pipeline.tokens)
        };
        self.pipelines.iter().position(is).ok_or_else(|| RequestError::Setting {
            field: "function",
            found: tokens.map_or_else(|| format!("{role:?}"), |tokens| format!("{role:?} of {tokens}")),
            allowed: "a shape the bundle was converted and loaded with",
        })
    }
}

impl Observed<'_> {
    /// The token's embedding, `(D)`.
    pub fn embedding(&self) -> Vec<f32> {
        self.column(self.pipeline.embedded())
    }

    /// The output of layer `layer`, `(D)`, if it is kept visible.
    pub fn layer(&self, layer: usize) -> Option<Vec<f32>> {
        let mut outputs = self.pipeline.layer_outputs();
        outputs.find(|(of, _)| *of == layer).map(|(_, output)| self.column(output))
    }

    /// What the heads read: the last layer's output after the final norm, `(D)`.
    pub fn final_hidden(&self) -> Vec<f32> {
        self.column(self.pipeline.result())
    }

    fn column(&self, hidden: &[f16]) -> Vec<f32> {
        hidden.chunks_exact(self.pipeline.tokens).map(|row| row[self.column].to_f32()).collect()
    }
}
