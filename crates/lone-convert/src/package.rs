//! A package, planned: what its program is and which weights it holds.

use lone_bundle::{Graph, GraphFunction, GraphKind};
use lone_mil::Program;

use crate::Note;
use crate::function::BuiltFunction;
use crate::weights::{PackageWeights, Source};

/// Everything about a package before it is written.
#[derive(Debug)]
pub(crate) struct PackagePlan<'c> {
    pub(crate) kind: GraphKind,
    pub(crate) program: Program,
    functions: Vec<GraphFunction>,
    /// In the order of the program's blobs.
    pub(crate) sources: Vec<Source<'c>>,
    /// Size of `weight.bin`.
    pub(crate) weight_bytes: u64,
    pub(crate) notes: Vec<Note>,
}

impl<'c> PackagePlan<'c> {
    /// `functions` refer to `weights`; the first is the default one.
    pub(crate) fn new(kind: GraphKind, functions: Vec<BuiltFunction>, weights: PackageWeights<'c>) -> Self {
        let default_function = functions.first().map(|built| built.function.name.clone()).unwrap_or_default();
        let (functions, descriptions) =
            functions.into_iter().map(|built| (built.function, built.description)).unzip();
        PackagePlan {
            kind,
            program: Program { functions, default_function },
            functions: descriptions,
            weight_bytes: weights.file_bytes(),
            sources: weights.sources,
            notes: weights.notes,
        }
    }

    /// Its entry in bundle.json, as the package called `package`.
    pub(crate) fn graph(&self, package: String) -> Graph {
        Graph { package, kind: self.kind, functions: self.functions.clone() }
    }
}
