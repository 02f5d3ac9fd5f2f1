//! A head: the logits of a slice of the vocabulary.

use lone_bundle::{Binding, GraphKind, Span};
use lone_lfm::Checkpoint;
use lone_mil::BuildError;

use crate::function::{BuiltFunction, FunctionGraph, Pass};
use crate::model::linear::Linear;
use crate::package::PackagePlan;
use crate::precision::Place;
use crate::weights::PackageWeights;

/// The package of the tokens in `span`, with a function for each of `passes`.
pub(crate) fn plan<'c>(
    checkpoint: &'c Checkpoint,
    mut weights: PackageWeights<'c>,
    span: Span,
    passes: &[Pass],
) -> Result<PackagePlan<'c>, BuildError> {
    let rows = span.start..span.end();
    let linear = Linear::load_rows(&mut weights, checkpoint.head(), rows, Place::Head);
    let width = checkpoint.config().hidden_size;
    let functions =
        passes.iter().map(|pass| function(&linear, width, pass.clone())).collect::<Result<_, _>>()?;
    Ok(PackagePlan::new(GraphKind::Head { vocabulary: span }, functions, weights))
}

/// hidden (1,D,1,S), after the final norm, to logits (1,V',1,S).
fn function(linear: &Linear, width: usize, pass: Pass) -> Result<BuiltFunction, BuildError> {
    let tokens = pass.tokens;
    let mut graph = FunctionGraph::new(pass);
    let hidden = graph.input("hidden", [1, width, 1, tokens], Binding::Hidden)?;
    let logits = linear.apply(&mut graph.builder, hidden)?;
    graph.output(logits, "logits", Binding::Logits)?;
    graph.finish()
}
