//! A small bundle, made right and then made wrong.

use std::collections::BTreeMap;

use super::*;

fn bundle() -> Bundle {
    Bundle {
        schema: SCHEMA,
        model: ModelFacts {
            name: "m".into(),
            model_type: "lfm2".into(),
            hidden_size: 4,
            ffn_size: 8,
            layers: vec![LayerKind::Conv, LayerKind::FullAttention],
            heads: 2,
            kv_heads: 1,
            head_dim: 2,
            vocab_size: 10,
            conv_taps: 3,
            sliding_window: None,
            max_positions: 128,
            parameters: 100,
            bos_token_id: Some(1),
            eos_token_ids: vec![7],
            sampling: SamplingDefaults::default(),
        },
        ropes: vec![Rope { inv_freq: vec![1.0] }],
        embeddings: Embeddings { file: "embeddings.bin".into(), rows: 10, columns: 4 },
        caches: vec![
            Cache { layer: 0, kind: CacheKind::Conv { channels: 4, rows: 2 } },
            Cache { layer: 1, kind: CacheKind::Key { rows: Rows::Context, kv_heads: 1, head_dim: 2 } },
            Cache { layer: 1, kind: CacheKind::Value { rows: Rows::Ring(8), kv_heads: 1, head_dim: 2 } },
        ],
        graphs: vec![
            Graph {
                package: "chunk_00.mlpackage".into(),
                kind: GraphKind::Chunk { layers: Span { start: 0, count: 2 } },
                functions: vec![],
            },
            Graph {
                package: "head_00.mlpackage".into(),
                kind: GraphKind::Head { vocabulary: Span { start: 0, count: 10 } },
                functions: vec![],
            },
        ],
        provenance: Provenance {
            lone_version: "0".into(),
            source_hash: String::new(),
            flags: BTreeMap::new(),
        },
        placement: None,
        files: vec![],
    }
}

#[test]
fn counts_of_operations_that_no_program_can_have_are_no_panic() {
    let op = PlacedOp { name: "a".into(), operator: "conv".into(), device: "cpu".into(), cost: None };
    let function = FunctionPlacement {
        package: "chunk_00.mlpackage".into(),
        function: "decode".into(),
        neural_engine: usize::MAX,
        elsewhere: vec![op],
    };
    assert_eq!(function.operations(), usize::MAX);
    let functions = vec![function.clone(), function];
    let placement = Placement { system: String::new(), compute_units: String::new(), functions };
    assert_eq!(placement.neural_engine_share(), Some(1.0));
}

fn with_table(content: &[u8]) -> (tempfile::TempDir, Bundle) {
    let dir = tempfile::tempdir().unwrap();
    let mut bundle = bundle();
    bundle.files.push(written(dir.path(), "embeddings.bin", content));
    (dir, bundle)
}

fn written(dir: &Path, name: &str, content: &[u8]) -> FileEntry {
    std::fs::write(dir.join(name), content).unwrap();
    let blake3 = blake3::hash(content).to_hex().to_string();
    FileEntry { path: name.into(), bytes: content.len() as u64, blake3 }
}

#[test]
fn what_is_saved_is_what_is_opened() {
    let (dir, bundle) = with_table(&[1; 80]);
    bundle.save(dir.path()).unwrap();
    assert_eq!(Bundle::open(dir.path()).unwrap(), bundle);
}

#[test]
fn a_placement_is_saved_and_does_not_make_another_bundle_of_it() {
    let (dir, mut bundle) = with_table(&[1; 80]);
    let identity = bundle.identity();
    let op = |name: &str, device: &str, cost| PlacedOp {
        name: name.into(),
        operator: "concat".into(),
        device: device.into(),
        cost,
    };
    let elsewhere = op("k_1_new", "cpu", Some(0.1));
    let function = |neural_engine, elsewhere| FunctionPlacement {
        package: "chunk_00.mlpackage".into(),
        function: "decode".into(),
        neural_engine,
        elsewhere,
    };
    bundle.placement = Some(Placement {
        system: "a Mac".into(),
        compute_units: "cpu_and_ne".into(),
        functions: vec![function(6, vec![]), function(3, vec![elsewhere])],
    });
    bundle.save(dir.path()).unwrap();
    let opened = Bundle::open(dir.path()).unwrap();
    assert_eq!(opened, bundle);
    assert_eq!(opened.identity(), identity);
    let placement = opened.placement.unwrap();
    assert!((placement.neural_engine_share().unwrap() - 0.9).abs() < 1e-12);
    assert!((placement.functions[1].neural_engine_share().unwrap() - 0.75).abs() < 1e-12);
    assert_eq!(function(0, vec![]).neural_engine_share(), None, "nothing is known of no operations");
    let unknown = |name| op(name, PlacedOp::UNKNOWN, None);
    assert_eq!(function(0, vec![unknown("a"), unknown("b")]).neural_engine_share(), None);
    assert_eq!(function(1, vec![unknown("a")]).neural_engine_share(), Some(0.5), "it may be anywhere");
}

#[test]
fn a_newer_schema_is_refused_before_its_fields_are_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE_NAME), r#"{"schema": 99}"#).unwrap();
    let error = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("schema 99"), "{error}");
}

#[test]
fn a_schema_that_never_was_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE_NAME), r#"{"schema": 0}"#).unwrap();
    let error = Bundle::open(dir.path()).unwrap_err().to_string();
    assert_eq!(error, "bundle.json: schema: expected 1 to 1, found 0");
}

#[test]
fn a_description_that_is_no_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(FILE_NAME)).unwrap();
    let error = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("bundle.json: not a file"), "{error}");
}

#[test]
fn a_changed_byte_is_found_at_load_in_all_files_but_weights() {
    let (dir, mut bundle) = with_table(&[1; 80]);
    bundle.files.push(written(dir.path(), "tokenizer.json", b"{}"));
    bundle.save(dir.path()).unwrap();
    std::fs::write(dir.path().join("embeddings.bin"), [2; 80]).unwrap();
    Bundle::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), b"[]").unwrap();
    let error = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("tokenizer.json is not as it was written: its hash is another"), "{error}");
}

#[test]
fn a_truncated_file_is_named_with_both_sizes() {
    let (dir, bundle) = with_table(&[1; 80]);
    bundle.save(dir.path()).unwrap();
    std::fs::write(dir.path().join("embeddings.bin"), [1; 79]).unwrap();
    let error = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("embeddings.bin: expected 80 bytes, found 79"), "{error}");
}

#[test]
fn a_changed_byte_another_size_and_a_missing_file_are_found() {
    let (dir, bundle) = with_table(&[1; 80]);
    bundle.save(dir.path()).unwrap();
    let table = dir.path().join("embeddings.bin");
    let damage = || {
        let mut damaged = bundle.check_files(dir.path(), |_| {}).unwrap();
        assert!(damaged.iter().all(|file| file.path == "embeddings.bin"));
        damaged.pop().map(|file| file.damage)
    };
    assert_eq!(damage(), None);
    std::fs::write(&table, [2; 80]).unwrap();
    assert!(matches!(damage(), Some(FileDamage::Hash { .. })));
    std::fs::write(&table, [1; 79]).unwrap();
    assert_eq!(damage(), Some(FileDamage::Size { expected: 80, found: 79 }));
    std::fs::remove_file(&table).unwrap();
    assert_eq!(damage(), Some(FileDamage::Missing));
    assert!(Bundle::open_description(dir.path()).is_ok() && Bundle::open(dir.path()).is_err());
}

#[test]
fn a_description_that_contradicts_itself_is_refused() {
    type Damage = (&'static str, fn(&mut Bundle));
    let damages: [Damage; 5] = [
        ("a file's path", |b| b.embeddings.file = "../embeddings.bin".into()),
        ("a file's path", |b| b.graphs[0].package = "/tmp/x".into()),
        ("embeddings", |b| b.embeddings.rows = 11),
        ("chunks", |b| b.model.layers.push(LayerKind::Conv)),
        ("a cache's layer", |b| b.caches[0].layer = 2),
    ];
    for (field, damage) in damages {
        let mut bundle = bundle();
        damage(&mut bundle);
        let error = bundle.check_consistency().unwrap_err().to_string();
        assert!(error.contains(field), "{field}: {error}");
    }
}

#[test]
fn only_context_rows_cost_more_with_context() {
    let bundle = bundle();
    assert_eq!(bundle.cache_bytes_per_token(), 2 * 2);
    assert_eq!(bundle.cache_bytes(100), 2 * (4 * 2 + 100 * 2 + 8 * 2));
}

#[test]
fn the_identity_changes_with_every_file_and_graph_and_not_with_how_the_bundle_came_to_be() {
    let original = bundle();
    let identity = original.identity();
    assert_eq!(identity.len(), 64);
    let mut same = bundle();
    same.provenance.source_hash = "another".into();
    same.model.name = "another".into();
    assert_eq!(same.identity(), identity);
    let mut other = bundle();
    other.files.push(FileEntry { path: "tokenizer.json".into(), bytes: 1, blake3: String::new() });
    assert_ne!(other.identity(), identity);
    let mut other = bundle();
    other.graphs.pop();
    assert_ne!(other.identity(), identity);
}
