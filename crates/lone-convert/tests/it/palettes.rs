//! Palettized bundles: what their blobs hold, and who reads what from them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use half::f16;
use lone_bundle::{Graph, GraphKind};
use lone_convert::{Calibration, ConvertOptions, Note, WeightPrecision};
use lone_lfm::Checkpoint;
use lone_mil::package::Package;
use lone_mil::program::{Arg, Literal, Op, Payload};
use lone_mil::{Backend, Function, Interpreter, Keep, LoadOptions, TensorMut, TensorRef};
use lone_testing::python::{Weight, check_packages};

use crate::source::Source;
use crate::support::{
    Converted, all_functions, convert_checkpoint, converted, model_dir, wide_models, write_fake,
};

const WIDTHS: [WeightPrecision; 3] = [WeightPrecision::Lut4, WeightPrecision::Lut6, WeightPrecision::Lut8];

/// A palettized weight as its blobs have it.
#[derive(Debug, PartialEq)]
struct Stored {
    /// Where the records of indices and tables are.
    offsets: [u64; 2],
    tables: Vec<Vec<f16>>,
    indices: Vec<usize>,
}

impl Stored {
    fn read(package: &Package, op: &Op) -> Stored {
        let [indices, lut] = ["indices", "lut"].map(|param| literal(op, param));
        let [index_bytes, lut_bytes] = [indices, lut].map(|literal| package.blobs.bytes(literal).unwrap());
        let (bits, count) = (indices.ty.dtype.bits() as usize, indices.ty.shape.elements());
        let bit = |at: usize| usize::from(index_bytes[at / 8] >> (at % 8) & 1);
        let entries: Vec<f16> = bytemuck::pod_collect_to_vec(lut_bytes);
        Stored {
            offsets: [indices, lut].map(|literal| match literal.payload {
                Payload::Blob(offset) => offset,
                _ => panic!("weights lie in blobs"),
            }),
            tables: entries.chunks(1 << bits).map(<[f16]>::to_vec).collect(),
            indices: (0..count).map(|at| (0..bits).map(|i| bit(at * bits + i) << i).sum()).collect(),
        }
    }

    /// The entry that each index names in its group's table.
    fn weight(&self) -> Vec<f16> {
        let group = self.indices.len() / self.tables.len();
        let groups = self.indices.chunks(group).zip(&self.tables);
        groups.flat_map(|(indices, table)| indices.iter().map(|&index| table[index])).collect()
    }
}

fn literal<'p>(op: &'p Op, param: &str) -> &'p Literal {
    let at = op.spec.params.iter().position(|known| known.name == param).unwrap();
    match &op.args[at] {
        Some(Arg::Literal(literal)) => literal,
        other => panic!("{param} is {other:?}"),
    }
}

/// The palettized weights of a function, by name.
fn stored(package: &Package, function: &Function) -> BTreeMap<String, Stored> {
    let palettized = function.ops.iter().filter(|op| op.spec.name == "constexpr_lut_to_dense");
    palettized.map(|op| (function.value(op.outputs[0]).name.clone(), Stored::read(package, op))).collect()
}

/// What the interpreter makes of these values of a function, given zeros.
fn interpreted<'n>(
    bundle: &Converted,
    graph: &Graph,
    function: &str,
    values: impl Iterator<Item = &'n String> + Clone,
) -> Vec<Vec<f16>> {
    let keep = values.clone().map(|value| Keep { function: function.into(), value: value.clone() });
    let options =
        LoadOptions { functions: vec![function.into()], keep: keep.collect(), ..LoadOptions::default() };
    let backend = Interpreter::<lone_mil::Reference>::new();
    let mut model = backend.load(&bundle.path(&graph.package), &options).unwrap();
    let signature = model.signature(function).unwrap();
    let zeros = |ports: &[lone_mil::Port]| -> Vec<Vec<f16>> {
        ports.iter().map(|port| vec![f16::ZERO; port.ty.shape.elements()]).collect()
    };
    let (inputs, mut outputs) = (zeros(&signature.inputs), zeros(&signature.outputs));
    let input_refs: Vec<_> = inputs.iter().map(|input| TensorRef::F16(input)).collect();
    let mut output_refs: Vec<_> = outputs.iter_mut().map(|output| TensorMut::F16(output)).collect();
    model.run(function, &input_refs, &mut output_refs).unwrap();
    outputs.split_off(outputs.len() - values.count())
}

fn options(precision: WeightPrecision) -> ConvertOptions {
    ConvertOptions { precision, ..all_functions() }
}

#[test]
fn the_interpreter_reads_the_entries_that_indices_name_and_they_are_the_nearest() {
    let checkpoint = Checkpoint::open(&model_dir("tiny-lfm3")).unwrap();
    let source = Source::new(&checkpoint, true);
    for precision in WIDTHS {
        let bundle = convert_checkpoint(&checkpoint, &options(precision));
        for graph in &bundle.content.graphs {
            let package = Package::open(&bundle.path(&graph.package)).unwrap();
            let weights = stored(&package, package.program.function("decode").unwrap());
            let read = interpreted(&bundle, graph, "decode", weights.keys());
            for ((name, stored), read) in weights.iter().zip(read) {
                assert!(read == stored.weight(), "{precision}: {name}");
                let (_, tensor) = source.tensor_of(name);
                let rows = match graph.kind {
                    GraphKind::Head { vocabulary } => vocabulary.start..vocabulary.end(),
                    GraphKind::Chunk { .. } => 0..tensor.rows(),
                };
                let values = source.rounded(tensor, rows, 0..tensor.row_len());
                assert_nearest(&values, stored, name);
            }
        }
    }
}

fn assert_nearest(values: &[f16], stored: &Stored, name: &str) {
    let group = values.len() / stored.tables.len();
    let groups = values.chunks(group).zip(stored.indices.chunks(group)).zip(&stored.tables);
    for ((values, indices), table) in groups {
        let table: Vec<f32> = table.iter().map(|entry| entry.to_f32()).collect();
        for (value, &index) in values.iter().zip(indices) {
            let distance = |entry: f32| (entry - value.to_f32()).abs();
            let least = table.iter().map(|&entry| distance(entry)).fold(f32::INFINITY, f32::min);
            assert!(distance(table[index]) == least, "{name}: {value} is {}", table[index]);
        }
    }
}

#[test]
fn all_functions_of_a_package_share_one_palette_a_tensor() {
    let bundle = converted("tiny-lfm2", &options(WeightPrecision::Lut6));
    for graph in &bundle.content.graphs {
        let package = Package::open(&bundle.path(&graph.package)).unwrap();
        let mut functions = package.program.functions.iter().map(|function| stored(&package, function));
        let first = functions.next().unwrap();
        assert!(!first.is_empty());
        assert!(functions.all(|function| function == first), "{}", graph.package);
    }
}

#[test]
fn everything_but_linear_layers_stays_in_fp16() {
    let bundle = converted("tiny-lfm3", &options(WeightPrecision::Lut4));
    let chunk = Package::open(&bundle.path("chunk_00.mlpackage")).unwrap();
    let function = chunk.program.function("decode").unwrap();
    let names: Vec<String> =
        stored(&chunk, function).into_keys().filter(|name| name.contains("_2_")).collect();
    let expected = [
        "feed_forward_w1",
        "feed_forward_w2",
        "feed_forward_w3",
        "self_attn_gate_proj",
        "self_attn_k_proj",
        "self_attn_o_proj",
        "self_attn_q_proj",
        "self_attn_v_proj",
    ];
    assert_eq!(names, expected.map(|name| format!("layers_2_{name}")));
    let embeddings = |bundle: &Converted| std::fs::read(bundle.path("embeddings.bin")).unwrap();
    assert!(embeddings(&bundle) == embeddings(&converted("tiny-lfm3", &all_functions())));
}

#[test]
fn a_table_serves_the_rows_asked_for_or_fewer_with_a_note() {
    let tables = |group, head_chunks| {
        let options = ConvertOptions { group, head_chunks, ..options(WeightPrecision::Lut4) };
        let bundle = converted("tiny-lfm3", &options);
        let head = Package::open(&bundle.path("head_00.mlpackage")).unwrap();
        let stored = stored(&head, head.program.function("decode").unwrap());
        (stored["embed_tokens"].tables.len(), bundle.notes)
    };
    assert_eq!(tables(Some(0), 0), (1, vec![]));
    assert_eq!(tables(None, 0), (96, vec![]));
    assert_eq!(tables(Some(128), 0).0, 12);
    let (count, notes) = tables(None, 9);
    assert_eq!(count, 19, "of 171 rows each");
    let tensor = "model.embed_tokens.weight".to_owned();
    assert_eq!(notes[0], Note::SmallerGroups { tensor, rows: 171, asked: 16, used: 9 });
}

#[test]
fn precision_auto_reaches_what_it_aims_at_in_fewer_bytes_than_the_widest_palettes() {
    let text = tempfile::tempdir().unwrap();
    let text = text.path().join("text.txt");
    std::fs::write(&text, "The capital of France is Paris. Count from 3 to 9. ".repeat(4)).unwrap();
    let bytes = |bundle: &Converted| bundle.content.files.iter().map(|file| file.bytes).sum::<u64>();
    let automatic = ConvertOptions {
        target_cosine: Some(0.9999),
        calibrate: Some(Calibration::File(text)),
        group: Some(0),
        ..all_functions()
    };
    let bundle = converted("tiny-lfm3", &automatic);
    let widest = converted("tiny-lfm3", &ConvertOptions { group: Some(0), ..options(WeightPrecision::Lut8) });
    assert!(bytes(&bundle) < bytes(&widest));
    let Note::Chosen { counts, cosine, is_fitted } = &bundle.notes[0] else { panic!("{:?}", bundle.notes) };
    assert!(*cosine >= 0.9999, "{cosine}");
    assert!(*is_fitted, "one piece of text serves for both, and the note says so");
    assert!(counts.iter().filter(|(_, count)| *count > 0).count() > 1, "{counts:?}");
    // The programs say what the note says.
    let mut found = BTreeMap::new();
    for graph in &bundle.content.graphs {
        let package = Package::open(&bundle.path(&graph.package)).unwrap();
        for stored in stored(&package, package.program.function("decode").unwrap()).into_values() {
            *found.entry(stored.tables[0].len()).or_insert(0) += 1;
        }
    }
    for (precision, entries) in WIDTHS.into_iter().zip([16, 64, 256]) {
        let count = counts.iter().find(|(chosen, _)| *chosen == precision).unwrap().1;
        assert_eq!(found.get(&entries).copied().unwrap_or(0), count, "{precision}");
    }
}

#[test]
fn the_same_checkpoint_gives_the_same_bytes() {
    let hashes = || {
        let files = converted("tiny-lfm2", &options(WeightPrecision::Lut4)).content.files;
        files.into_iter().map(|file| file.blake3).collect::<Vec<_>>()
    };
    assert_eq!(hashes(), hashes());
}

#[test]
fn palettes_fitted_to_text_are_others_and_of_the_same_size() {
    let text = tempfile::tempdir().unwrap();
    let text = text.path().join("text.txt");
    std::fs::write(&text, "The capital of France is Paris. Count from 3 to 9.").unwrap();
    let fitted = ConvertOptions {
        calibrate: Some(Calibration::File(text)),
        group: Some(64),
        ..options(WeightPrecision::Lut4)
    };
    let plain = ConvertOptions { calibrate: None, ..fitted.clone() };
    let [first, again, plain] = [&fitted, &fitted, &plain].map(|options| converted("tiny-lfm3", options));
    assert_eq!(first.content.files, again.content.files);
    for (fitted, plain) in first.content.files.iter().zip(&plain.content.files) {
        assert_eq!((&fitted.path, fitted.bytes), (&plain.path, plain.bytes));
        let differs = fitted.path.ends_with("weight.bin");
        assert_eq!(fitted.blake3 != plain.blake3, differs, "{}", fitted.path);
    }
}

#[test]
fn coremltools_expands_palettes_to_the_weights_that_indices_name() {
    let tiny = Checkpoint::open(&model_dir("tiny-lfm2")).unwrap();
    let [_, deep] = wide_models().map(write_fake);
    let deep = Checkpoint::open(deep.path()).unwrap();
    let mut bundles = vec![convert_checkpoint(&deep, &options(WeightPrecision::Lut6))];
    for precision in WIDTHS {
        bundles.push(convert_checkpoint(&tiny, &options(precision)));
        bundles.push(convert_checkpoint(&tiny, &ConvertOptions { group: Some(0), ..options(precision) }));
    }
    let links = tempfile::tempdir().unwrap();
    let packages = bundles.iter().zip(0..).flat_map(|(bundle, number)| bundle.link(links.path(), number));
    let packages: Vec<PathBuf> = packages.collect();
    for (path, read) in packages.iter().zip(check_packages(&packages)) {
        check(&Package::open(path).unwrap(), &read);
    }
}

/// Every palettized weight that coremltools read must be what its indices name.
fn check(package: &Package, read: &[Weight]) {
    for function in &package.program.functions {
        let weights = stored(package, function);
        assert!(!weights.is_empty());
        for (name, stored) in weights {
            let is_weight = |weight: &&Weight| {
                weight.function == function.name && weight.value == name && weight.parameter.is_none()
            };
            let weight = read.iter().find(is_weight).unwrap_or_else(|| panic!("no `{name}`"));
            let expected = stored.weight();
            assert!(weight.bytes == bytemuck::cast_slice::<f16, u8>(&expected), "{}: {name}", function.name);
        }
    }
}
