//! What coremltools says of converted packages, and that it reads the checkpoint's weights in them.

use std::collections::BTreeMap;
use std::ops::Range;

use half::f16;
use lone_bundle::{Graph, GraphKind};
use lone_convert::ConvertOptions;
use lone_lfm::{Checkpoint, Tensor};
use lone_testing::python::{Weight, check_packages};

use crate::support::{MODELS, all_functions, convert_checkpoint, model_dir, wide_models, write_fake};

#[test]
#[ignore = "needs LONE_PYTHON, a Python with tools/requirements.txt"]
fn coremltools_takes_every_function_and_reads_the_weights_of_the_checkpoint() {
    for model in MODELS {
        check(&Checkpoint::open(&model_dir(model)).unwrap(), &all_functions());
    }
    let tiny = Checkpoint::open(&model_dir("tiny-lfm3")).unwrap();
    check(&tiny, &ConvertOptions { ctx: 20_000, ring: false, ..all_functions() });
    check(&tiny, &ConvertOptions { precision_rules: false, head_chunks: 3, ..all_functions() });
}

#[test]
#[ignore = "needs LONE_PYTHON, a Python with tools/requirements.txt"]
fn coremltools_reads_split_weights_scaled_by_sixteen() {
    for model in wide_models() {
        let dir = write_fake(model);
        check(&Checkpoint::open(dir.path()).unwrap(), &all_functions());
    }
}

/// Converts and has every package checked; every weight that coremltools read must be the checkpoint's.
fn check(checkpoint: &Checkpoint, options: &ConvertOptions) {
    let bundle = convert_checkpoint(checkpoint, options);
    let packages: Vec<_> = bundle.content.graphs.iter().map(|graph| bundle.path(&graph.package)).collect();
    let source = Source { tensors: tensors(checkpoint), rules: options.precision_rules };
    let (mut in_chunks, mut in_heads) = (BTreeMap::new(), BTreeMap::new());
    for (graph, read) in bundle.content.graphs.iter().zip(check_packages(&packages)) {
        for function in &graph.functions {
            let elements = source.check_function(graph, &function.name, &read);
            let total =
                if matches!(graph.kind, GraphKind::Head { .. }) { &mut in_heads } else { &mut in_chunks };
            *total.entry(function.name.clone()).or_insert(0) += elements;
        }
    }
    let head = checkpoint.head().len();
    let outside = if checkpoint.config().tied { head } else { 2 * head };
    let all: usize = source.tensors.values().map(Tensor::len).sum();
    assert!(in_chunks.values().all(|&elements| elements == all - outside), "{in_chunks:?}");
    assert!(in_heads.values().all(|&elements| elements == head), "{in_heads:?}");
}

/// All tensors of a checkpoint, by what they are called in a program.
fn tensors(checkpoint: &Checkpoint) -> BTreeMap<String, Tensor<'_>> {
    let mut all = vec![checkpoint.embed(), checkpoint.head(), checkpoint.final_norm()];
    for layer in 0..checkpoint.config().layers.len() {
        checkpoint.layer(layer).map(|&tensor| all.push(tensor));
    }
    let name = |tensor: &Tensor<'_>| {
        tensor.name().trim_start_matches("model.").trim_end_matches(".weight").replace('.', "_")
    };
    all.into_iter().map(|tensor| (name(&tensor), tensor)).collect()
}

struct Source<'c> {
    tensors: BTreeMap<String, Tensor<'c>>,
    rules: bool,
}

impl Source<'_> {
    /// Compares the weights of one function, and gives the number of their elements.
    fn check_function(&self, graph: &Graph, function: &str, read: &[Weight]) -> usize {
        let mut columns_seen = BTreeMap::new();
        let mut elements = 0;
        let weights = read.iter().filter(|weight| weight.function == function && weight.shape.len() == 4);
        for weight in weights {
            let (name, tensor) = self.tensor_of(&weight.value);
            let count = weight.shape.iter().product::<usize>();
            let rows = match graph.kind {
                GraphKind::Head { vocabulary } => vocabulary.start..vocabulary.end(),
                GraphKind::Chunk { .. } => 0..tensor.rows(),
            };
            let seen = columns_seen.entry(name).or_insert(0);
            let columns = *seen..*seen + count / rows.len();
            *seen = columns.end;
            let expected = self.rounded(tensor, rows, columns);
            assert!(weight.bytes == expected, "{}: {function}: {} differs", graph.package, weight.value);
            elements += count;
        }
        elements
    }

    /// The tensor that a value is, or is a part or a tap of.
    fn tensor_of(&self, value: &str) -> (&str, &Tensor<'_>) {
        let whole = |suffix: &str| value.rsplit_once(suffix).map_or(value, |(whole, _)| whole);
        let names = [value, whole("_part"), whole("_tap")];
        let found = names.iter().find_map(|name| self.tensors.get_key_value(*name));
        let (name, tensor) = found.unwrap_or_else(|| panic!("`{value}` is no tensor of the checkpoint"));
        (name, tensor)
    }

    /// A part of a tensor in fp16, times 16 where it is a matrix wider than 1024.
    fn rounded(&self, tensor: &Tensor<'_>, rows: Range<usize>, columns: Range<usize>) -> Vec<u8> {
        let is_wide = tensor.shape().len() == 2 && tensor.row_len() > 1024;
        let scale = if self.rules && is_wide { 16.0 } else { 1.0 };
        let mut row_values = vec![0.0; tensor.row_len()];
        let mut bytes = Vec::new();
        for row in rows {
            tensor.read_rows_f32(row..row + 1, &mut row_values);
            let part = &row_values[columns.clone()];
            bytes.extend(part.iter().flat_map(|value| f16::from_f32(value * scale).to_le_bytes()));
        }
        bytes
    }
}
