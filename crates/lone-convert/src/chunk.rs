//! A chunk: a run of layers, and after the last of all the final norm.

use lone_bundle::{Binding, GraphKind, Span};
use lone_lfm::Checkpoint;
use lone_mil::BuildError;

use crate::function::{BuiltFunction, FunctionGraph, Pass};
use crate::model::inputs::{ChunkInputs, Widths};
use crate::model::layer::Layer;
use crate::model::norm::RmsNorm;
use crate::package::PackagePlan;
use crate::session::Session;
use crate::weights::PackageWeights;

/// The layers of a chunk, loaded.
struct Chunk<'s> {
    session: &'s Session,
    widths: Widths,
    span: Span,
    layers: Vec<Layer>,
    final_norm: Option<RmsNorm>,
}

/// The package of the layers in `span`, with a function for each of `passes`.
pub(crate) fn plan<'c>(
    checkpoint: &'c Checkpoint,
    session: &Session,
    mut weights: PackageWeights<'c>,
    span: Span,
    passes: &[Pass],
) -> Result<PackagePlan<'c>, BuildError> {
    let config = checkpoint.config();
    let chunk = Chunk {
        session,
        widths: Widths { hidden: config.hidden_size, head: config.head_dim },
        span,
        layers: (span.start..span.end())
            .map(|layer| Layer::load(&mut weights, checkpoint, session, layer))
            .collect(),
        final_norm: (span.end() == config.layers.len())
            .then(|| RmsNorm::over_channels(&mut weights, checkpoint.final_norm(), config.norm_eps)),
    };
    let functions = passes.iter().map(|pass| chunk.function(pass.clone())).collect::<Result<_, _>>()?;
    Ok(PackagePlan::new(GraphKind::Chunk { layers: span }, functions, weights))
}

impl Chunk<'_> {
    fn function(&self, pass: Pass) -> Result<BuiltFunction, BuildError> {
        let mut graph = FunctionGraph::new(pass);
        let inputs = ChunkInputs::declare(&mut graph, self.session, self.span, &self.widths)?;
        let mut state = Vec::new();
        let mut x = inputs.hidden;
        for (layer, module) in (self.span.start..).zip(&self.layers) {
            x = module.apply(&mut graph.builder, x, &inputs, &mut state)?;
            if layer + 1 < self.span.end() || self.final_norm.is_some() {
                let name = format!("layer_{layer}");
                graph.builder.name(x, &name)?;
                graph.layer_output(layer, &name);
            } else {
                graph.layer_output(layer, HIDDEN_OUT);
            }
        }
        if let Some(norm) = &self.final_norm {
            x = norm.apply(&mut graph.builder, x)?;
        }
        graph.output(x, HIDDEN_OUT, Binding::Hidden)?;
        for new in state {
            let (name, binding) = self.session.output(new.cache);
            graph.output(new.value, &name, binding)?;
        }
        graph.finish()
    }
}

const HIDDEN_OUT: &str = "hidden_out";
