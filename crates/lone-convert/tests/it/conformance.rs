//! What coremltools says of converted packages, and that it reads the checkpoint's weights in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use half::f16;
use lone_bundle::{Graph, GraphKind};
use lone_convert::ConvertOptions;
use lone_lfm::{Checkpoint, Tensor};
use lone_testing::python::{Weight, check_packages};

use crate::source::Source;
use crate::support::{
    Converted, MODELS, all_functions, convert_checkpoint, model_dir, wide_models, write_fake,
};

#[test]
fn coremltools_takes_every_function_and_reads_the_weights_of_the_checkpoint() {
    let ladder =
        ConvertOptions { ctx: vec![64, 20_000], prefill: vec![8, 32], ring: false, ..all_functions() };
    let tiny = ("tiny-lfm3", ladder);
    let naive = ("tiny-lfm3", ConvertOptions { precision_rules: false, head_chunks: 3, ..all_functions() });
    let models = MODELS.map(|model| (model, all_functions()));
    let stored = models.into_iter().chain([tiny, naive]).map(|(model, options)| (model_dir(model), options));
    let fakes = wide_models().map(write_fake);
    let wide = fakes.iter().map(|dir| (dir.path().to_owned(), all_functions()));

    let cases: Vec<Case> = stored.chain(wide).map(|(dir, options)| Case::new(&dir, options)).collect();
    // One Python for all: starting it takes longer than checking.
    let links = tempfile::tempdir().unwrap();
    let packages: Vec<PathBuf> =
        cases.iter().zip(0..).flat_map(|(case, i)| case.bundle.link(links.path(), i)).collect();
    let mut read = check_packages(&packages).into_iter();
    for case in &cases {
        case.check(&read.by_ref().take(case.bundle.content.graphs.len()).collect::<Vec<_>>());
    }
}

/// A conversion, and what it was made from.
struct Case {
    checkpoint: Checkpoint,
    options: ConvertOptions,
    bundle: Converted,
}

impl Case {
    fn new(dir: &Path, options: ConvertOptions) -> Case {
        let checkpoint = Checkpoint::open(dir).unwrap();
        let bundle = convert_checkpoint(&checkpoint, &options);
        Case { checkpoint, options, bundle }
    }

    /// Every weight that coremltools read must be the checkpoint's, and none may be missing.
    fn check(&self, read: &[Vec<Weight>]) {
        let source = Source::new(&self.checkpoint, self.options.precision_rules);
        let (mut in_chunks, mut in_heads) = (BTreeMap::new(), BTreeMap::new());
        for (graph, read) in self.bundle.content.graphs.iter().zip(read) {
            for function in &graph.functions {
                let elements = check_function(&source, graph, &function.name, read);
                let is_head = matches!(graph.kind, GraphKind::Head { .. });
                let total = if is_head { &mut in_heads } else { &mut in_chunks };
                *total.entry(function.name.clone()).or_insert(0) += elements;
            }
        }
        let head = self.checkpoint.head().len();
        let outside = if self.checkpoint.config().tied { head } else { 2 * head };
        let all: usize = source.tensors.values().map(Tensor::len).sum();
        assert!(in_chunks.values().all(|&elements| elements == all - outside), "{in_chunks:?}");
        assert!(in_heads.values().all(|&elements| elements == head), "{in_heads:?}");
    }
}

/// Compares the weights of one function, and gives the number of their elements.
fn check_function(source: &Source<'_>, graph: &Graph, function: &str, read: &[Weight]) -> usize {
    let mut columns_seen = BTreeMap::new();
    let mut elements = 0;
    let weights = read.iter().filter(|weight| weight.function == function && weight.shape.len() == 4);
    for weight in weights {
        let (name, tensor) = source.tensor_of(&weight.value);
        let count = weight.shape.iter().product::<usize>();
        let rows = match graph.kind {
            GraphKind::Head { vocabulary } => vocabulary.start..vocabulary.end(),
            GraphKind::Chunk { .. } => 0..tensor.rows(),
        };
        let seen = columns_seen.entry(name).or_insert(0);
        let columns = *seen..*seen + count / rows.len();
        *seen = columns.end;
        let expected = source.rounded(tensor, rows, columns);
        assert!(
            weight.bytes == bytemuck::cast_slice::<f16, u8>(&expected),
            "{}: {function}: {} differs",
            graph.package,
            weight.value
        );
        elements += count;
    }
    elements
}
