//! What a bundle looks like on disk, for every model of the repository.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{MODELS, all_functions, convert_checkpoint, converted, copy_of};
use lone_bundle::{Binding, Bundle, CacheKind, GraphKind, Role};
use lone_convert::{ConvertOptions, Note};
use lone_lfm::chat::Conversation;
use lone_lfm::{ChatTemplate, Checkpoint};
use lone_mil::package::Package;
use lone_mil::{Function, ValueId};
use serde_json::{Value, json};
use xtask::fake_checkpoint::{self, Model, Preset};

#[test]
fn every_package_opens_and_its_functions_are_as_described() {
    for model in MODELS {
        let bundle = converted(model, &all_functions());
        for graph in &bundle.content.graphs {
            let package = Package::open(&bundle.path(&graph.package)).unwrap();
            assert_eq!(package.program.functions.len(), graph.functions.len(), "{model}");
            for description in &graph.functions {
                let function = package.program.function(&description.name).unwrap();
                let ports = |ids: &[ValueId]| ids.iter().map(|&id| port(function, id)).collect::<Vec<_>>();
                let described = |ports: &[lone_bundle::Port]| -> Vec<_> {
                    ports.iter().map(|port| (port.name.clone(), port.shape.clone())).collect()
                };
                assert_eq!(ports(&function.inputs), described(&description.inputs), "{model}");
                assert_eq!(ports(&function.outputs), described(&description.outputs), "{model}");
                for output in &description.layer_outputs {
                    assert!(function.value_named(&output.value).is_some(), "{model}: {output:?}");
                }
            }
        }
    }
}

fn port(function: &Function, id: ValueId) -> (String, Vec<usize>) {
    let value = function.value(id);
    (value.name.clone(), value.ty.tensor().shape.to_vec())
}

#[test]
fn the_bundle_opens_whole_and_its_hashes_hold() {
    let bundle = converted("tiny-lfm3", &all_functions());
    let opened = Bundle::open(&bundle.dir()).unwrap();
    assert_eq!(opened, bundle.content);
    assert_eq!(opened.check_files(&bundle.dir(), |_| {}).unwrap(), []);
    let files: BTreeSet<&str> = opened.files.iter().map(|file| file.path.as_str()).collect();
    for file in
        ["embeddings.bin", "tokenizer.json", "chat_template.jinja", "chunk_01.mlpackage/Manifest.json"]
    {
        assert!(files.contains(file), "{file} is not listed");
    }
    assert_eq!(opened.model.name, "tiny-lfm3");
    assert_eq!(opened.provenance.flags["spec-drafts"], 16);
}

#[test]
fn a_bundle_can_be_called_otherwise_than_the_directory() {
    let options = ConvertOptions { name: Some("Window-8".into()), ..ConvertOptions::default() };
    assert_eq!(converted("micro/lfm3-window8", &options).content.model.name, "Window-8");
}

#[test]
fn a_chunk_is_given_what_it_uses_and_nothing_else() {
    let bundle = converted("tiny-lfm3", &ConvertOptions { layers_per_model: 2, ..ConvertOptions::default() });
    let inputs: Vec<Vec<&str>> = (bundle.content.chunks())
        .map(|chunk| chunk.functions[0].inputs.iter().map(|port| port.name.as_str()).collect())
        .collect();
    assert_eq!(inputs[0], ["hidden", "conv_0", "conv_1"]);
    assert_eq!(inputs[1], ["hidden", "cos_full", "sin_full", "mask_full", "k_2", "v_2", "conv_3"]);
    assert_eq!(inputs[2], ["hidden", "cos_sliding", "sin_sliding", "mask_sliding", "k_4", "v_4", "conv_5"]);
    let outputs: Vec<&str> =
        bundle.content.graphs[1].functions[1].outputs.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(outputs, ["hidden_out", "k_2_new", "v_2_new", "conv_3_window"]);
}

#[test]
fn a_ring_has_the_rows_of_its_window_and_a_plain_cache_those_of_the_context() {
    let rows = |ring, ctx| {
        let bundle = converted(
            "micro/lfm3-window8",
            &ConvertOptions { ring, ctx: vec![ctx], prefill: vec![4], ..Default::default() },
        );
        let sliding = bundle.content.caches.iter().find(|cache| cache.layer == 4).unwrap();
        let CacheKind::Key { rows, .. } = sliding.kind else { panic!("layer 4 slides") };
        rows.count(ctx)
    };
    assert_eq!((rows(true, 32), rows(false, 32)), (8, 32));
    assert_eq!(rows(true, 8), 8, "a ring as long as the context is a plain cache");
}

#[test]
fn a_ladder_of_contexts_has_functions_for_each_over_the_same_weights() {
    let convert = |ctx: &[usize], prefill: &[usize]| {
        let options = ConvertOptions {
            ctx: ctx.to_vec(),
            prefill: prefill.to_vec(),
            spec_drafts: Some(3),
            ..ConvertOptions::default()
        };
        converted("micro/lfm3-window8", &options).content
    };
    let (single, ladder) = (convert(&[64], &[4]), convert(&[8, 64], &[4, 6]));
    let weights = |bundle: &Bundle| -> Vec<u64> {
        bundle.files.iter().filter(|file| file.path.ends_with("weight.bin")).map(|file| file.bytes).collect()
    };
    assert_eq!(weights(&ladder), weights(&single));
    assert_eq!(ladder.contexts(), [8, 64]);
    assert_eq!(ladder.caches, single.caches);
    assert_eq!(ladder.cache_bytes(64), single.cache_bytes(64));
    for graph in ladder.chunks() {
        let shapes: Vec<_> =
            graph.functions.iter().map(|function| (function.role, function.tokens, function.ctx)).collect();
        let at = |ctx| {
            [(Role::Decode, 1, ctx), (Role::Prefill, 4, ctx), (Role::Prefill, 6, ctx), (Role::Verify, 4, ctx)]
        };
        assert_eq!(shapes, [at(8), at(64)].concat());
    }
    assert_eq!(ladder.provenance.flags["ctx"], serde_json::json!([8, 64]));
    assert_eq!(single.provenance.flags["ctx"], 64);
}

#[test]
fn only_the_functions_asked_for_are_built() {
    let roles = |options: ConvertOptions| -> Vec<Vec<Role>> {
        let bundle = converted("micro/lfm2-old-config", &ConvertOptions { layers_per_model: 9, ..options });
        let roles =
            |graph: &lone_bundle::Graph| graph.functions.iter().map(|function| function.role).collect();
        bundle.content.graphs.iter().map(roles).collect()
    };
    let base = ConvertOptions::default;
    let decode_only = ConvertOptions { decode_only: true, ..base() };
    assert_eq!(roles(decode_only), [vec![Role::Decode], vec![Role::Decode]]);
    let prefill_only = ConvertOptions { prefill_only: true, ..base() };
    assert_eq!(roles(prefill_only), [vec![Role::Prefill], vec![Role::Decode]]);
    let drafts = ConvertOptions { decode_only: true, spec_drafts: Some(3), ..base() };
    assert_eq!(roles(drafts), [vec![Role::Decode, Role::Verify], vec![Role::Decode, Role::Verify]]);
}

#[test]
fn head_slices_cover_the_vocabulary() {
    let bundle = converted("tiny-lfm2", &ConvertOptions { head_chunks: 5, ..ConvertOptions::default() });
    let slices: Vec<usize> = (bundle.content.heads())
        .map(|head| match head.kind {
            GraphKind::Head { vocabulary } => vocabulary.count,
            GraphKind::Chunk { .. } => panic!("a chunk among the heads"),
        })
        .collect();
    assert_eq!(slices, [308, 307, 307, 307, 307]);
}

#[test]
fn a_long_context_is_cut_into_segments_that_an_axis_can_hold() {
    let options =
        ConvertOptions { ctx: vec![40_000], prefill: vec![2], ring: false, ..ConvertOptions::default() };
    let bundle = converted("micro/lfm3-window8", &options);
    let chunk = bundle.content.chunks().nth(1).unwrap();
    for function in &chunk.functions {
        let names: Vec<&str> = function.inputs.iter().map(|port| port.name.as_str()).collect();
        let expected = ["mask_sliding_s0", "mask_sliding_s1", "mask_sliding_s2", "mask_sliding_s3"];
        assert_eq!(names.iter().filter(|name| name.starts_with("mask_sliding")).count(), expected.len());
        assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
        let new: Vec<usize> = (function.inputs.iter())
            .filter_map(|port| match port.binding {
                Binding::Mask { columns, .. } => Some(columns.start),
                _ => None,
            })
            .collect();
        assert_eq!(new[..4], [0, 13_334, 26_667, 40_000]);
        let longest = function.inputs.iter().flat_map(|port| &port.shape).max();
        assert_eq!(longest, Some(&13_334));
    }
}

/// Of all its files: programs, description and tokenizer too, which weigh in a model of a few MB and in no other.
#[test]
fn a_bundle_with_drafts_is_little_more_than_the_checkpoint_and_its_embeddings() {
    let preset = Preset::Lfm3_1_7b.model();
    let model = Model {
        hidden: 512,
        ffn: 2048,
        heads: 8,
        kv_heads: 2,
        head_dim: 64,
        layers: 8,
        vocab: 16_000,
        ..preset
    };
    let checkpoint = tempfile::tempdir().unwrap();
    fake_checkpoint::write(checkpoint.path(), &fake_checkpoint::Options::new(model)).unwrap();
    let bundle = convert_checkpoint(&Checkpoint::open(checkpoint.path()).unwrap(), &all_functions());
    let model = &bundle.content.model;
    let weights = 2 * (model.parameters + (model.vocab_size * model.hidden_size) as u64);
    let stored: u64 = bundle.content.files.iter().map(|file| file.bytes).sum();
    let description = fs::metadata(bundle.path("bundle.json")).unwrap().len();
    assert!(stored + description <= weights * 105 / 100, "{stored} bytes, and {weights} of weights");
}

#[test]
fn what_deserves_a_word_is_told() {
    let notes = |model, options: &ConvertOptions| converted(model, options).notes;
    assert_eq!(notes("tiny-lfm3", &ConvertOptions::default()), []);
    assert_eq!(notes("micro/lfm3-window8", &ConvertOptions::default()), [Note::NoTokenizer]);
    let long = ConvertOptions { ctx: vec![5000], ..ConvertOptions::default() };
    let expected = [Note::LongContext { ctx: 5000, max_positions: 4096 }, Note::NoTokenizer];
    assert_eq!(notes("micro/lfm3-window8", &long), expected);
}

#[test]
fn the_text_files_of_a_checkpoint_come_along_as_they_are() {
    let checkpoint = copy_of("tiny-lfm3");
    let roles = r#"{"bos_token": "<|startoftext|>"}"#;
    fs::write(checkpoint.path().join("special_tokens_map.json"), roles).unwrap();
    let bundle =
        convert_checkpoint(&Checkpoint::open(checkpoint.path()).unwrap(), &ConvertOptions::default());
    let names = ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"];
    for name in names {
        let original = fs::read(checkpoint.path().join(name)).unwrap();
        assert!(original == fs::read(bundle.path(name)).unwrap(), "{name}");
    }
}

#[test]
fn the_chat_template_of_a_fake_checkpoint_renders() {
    let model = Model {
        hidden: 64,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        ffn: 96,
        layers: 2,
        vocab: 300,
        ..Preset::Lfm2_350m.model()
    };
    let checkpoint = tempfile::tempdir().unwrap();
    fake_checkpoint::write(checkpoint.path(), &fake_checkpoint::Options::new(model)).unwrap();
    let template = ChatTemplate::open(checkpoint.path()).unwrap();
    let turn = |role: &str, content: &str| json!({ "role": role, "content": content });
    let (system, user) = (turn("system", "Be brief."), turn("user", "Hello"));
    let rendered = |messages: &[Value]| template.render(&Conversation::new(messages)).unwrap();
    let opening = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(rendered(std::slice::from_ref(&user)), format!("<|startoftext|>{opening}"));
    let with_system = format!("<|startoftext|><|im_start|>system\nBe brief.<|im_end|>\n{opening}");
    assert_eq!(rendered(&[system, user]), with_system);
}
