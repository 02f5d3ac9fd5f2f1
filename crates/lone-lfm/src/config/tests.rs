//! Every spelling, default and refusal of config.json.

use serde_json::{Value, json};

use super::*;

fn lfm2() -> Value {
    json!({
        "model_type": "lfm2", "hidden_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 16,
        "num_key_value_heads": 8, "vocab_size": 65536, "intermediate_size": 6656,
        "layer_types": ["conv", "full_attention", "conv"], "eos_token_id": 7, "bos_token_id": 1,
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}
    })
}

fn lfm3() -> Value {
    json!({
        "model_type": "lfm3", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 4, "vocab_size": 128000, "intermediate_size": 7680
    })
}

fn with(mut config: Value, changes: Value) -> Value {
    let fields = config.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        fields.insert(name.clone(), value.clone());
    }
    config
}

fn without(mut config: Value, field: &str) -> Value {
    config.as_object_mut().unwrap().remove(field);
    config
}

fn parse(config: &Value) -> (Config, Vec<Warning>) {
    Config::parse(&config.to_string(), None).unwrap()
}

fn refusal(config: &Value) -> String {
    Config::parse(&config.to_string(), None).unwrap_err().to_string()
}

#[test]
fn a_new_lfm2_config_resolves_without_a_warning() {
    let (config, warnings) = parse(&lfm2());
    assert_eq!(warnings, []);
    assert_eq!((config.hidden_size, config.ffn_size, config.head_dim, config.conv_taps), (1024, 4608, 64, 3));
    assert_eq!(config.layers, [LayerKind::Conv, LayerKind::FullAttention, LayerKind::Conv]);
    assert_eq!(config.full_rope, Some(RopeConfig { theta: 1e6, kind: RopeKind::Default }));
    assert_eq!((config.sliding_rope, config.sliding_window), (None, None));
    assert_eq!(
        (config.tied, config.conv_bias, config.sandwich_norm, config.attention_gate),
        (true, false, false, false)
    );
    assert_eq!((config.bos_token_id, config.eos_token_ids), (Some(1), vec![7]));
    assert_eq!(config.norm_eps, 1e-5);
}

#[test]
fn an_old_lfm2_config_resolves_to_the_same_model() {
    let old = json!({
        "model_type": "lfm2", "block_dim": 1024, "num_hidden_layers": 3, "num_heads": 16, "num_key_value_heads": 8,
        "vocab_size": 65536, "block_ff_dim": 6656, "full_attn_idxs": [1], "eos_token_id": 7, "bos_token_id": 1,
        "rope_theta": 1000000.0, "tie_embedding": true, "block_norm_eps": 1e-5, "torch_dtype": "bfloat16"
    });
    assert_eq!(parse(&old), parse(&lfm2()));
}

#[test]
fn an_lfm3_config_of_sizes_alone_takes_the_1_7b_defaults() {
    let (config, warnings) = parse(&lfm3());
    assert_eq!(warnings, []);
    let of_kind = |kind| (0..24).filter(|&layer| config.layers[layer] == kind).collect::<Vec<_>>();
    assert_eq!(of_kind(LayerKind::FullAttention), [2, 6, 10, 14, 18, 22]);
    assert_eq!(of_kind(LayerKind::SlidingAttention), [4, 8, 12, 16, 20]);
    assert_eq!(
        (config.ffn_size, config.head_dim, config.conv_taps, config.sliding_window),
        (7680, 128, 7, Some(256))
    );
    assert_eq!((config.sandwich_norm, config.attention_gate), (true, true));
    let half = RopeKind::Proportional { partial_factor: 0.5, factor: 1.0 };
    assert_eq!(config.rope(LayerKind::FullAttention), Some(&RopeConfig { theta: 1e6, kind: half }));
    assert_eq!(
        config.rope(LayerKind::SlidingAttention),
        Some(&RopeConfig { theta: 1e4, kind: RopeKind::Default })
    );
    assert_eq!(config.rope(LayerKind::Conv), None);
}

#[test]
fn the_new_spelling_wins_and_a_difference_is_told() {
    for (old, old_value, new) in [
        ("block_ff_dim", json!(512), "intermediate_size"),
        ("block_dim", json!(512), "hidden_size"),
        ("num_heads", json!(4), "num_attention_heads"),
        ("full_attn_idxs", json!([0]), "layer_types"),
        ("rope_theta", json!(5.0), "rope_parameters.rope_theta"),
    ] {
        let (config, warnings) = parse(&with(lfm2(), json!({old: old_value})));
        assert_eq!(config, parse(&lfm2()).0, "{old}");
        let [Warning::SpellingsDiffer { old: named_old, new: named_new, .. }] = &warnings[..] else {
            panic!("{old}: {warnings:?}");
        };
        assert_eq!((named_old.as_str(), named_new.as_str()), (old, new));
    }
    let both = json!({"tie_word_embeddings": false, "tie_embedding": true, "norm_eps": 1e-6, "block_norm_eps": 1e-5,
        "dtype": "float32", "torch_dtype": "bfloat16"});
    let (config, warnings) = parse(&with(lfm2(), both));
    assert_eq!((config.tied, config.norm_eps, warnings.len()), (false, 1e-6, 3));
}

#[test]
fn two_spellings_that_agree_are_no_news() {
    let both = json!({"block_ff_dim": 6656, "num_heads": 16, "rope_theta": 1000000, "full_attn_idxs": [1],
        "tie_word_embeddings": true, "tie_embedding": true});
    assert_eq!(parse(&with(lfm2(), both)).1, []);
}

#[test]
fn the_feed_forward_width_follows_lfm2s_adjustment() {
    let width = |changes| parse(&with(lfm2(), changes)).0.ffn_size;
    assert_eq!(width(json!({"block_auto_adjust_ff_dim": false})), 6656);
    assert_eq!(width(json!({"block_ffn_dim_multiplier": null})), 4437);
    assert_eq!(width(json!({"block_ffn_dim_multiplier": 1.3})), 5888);
    assert_eq!(width(json!({"block_multiple_of": 32})), 4448);
    assert_eq!(width(json!({"intermediate_size": 10240})), 6912);
    assert_eq!(width(json!({"intermediate_size": 12288})), 8192);
    let lfm3 = parse(&with(lfm3(), json!({"block_auto_adjust_ff_dim": true, "intermediate_size": 7681}))).0;
    assert_eq!(lfm3.ffn_size, 7681);
}

#[test]
fn stop_tokens_are_a_number_or_a_list_and_generation_config_overrides() {
    let listed = with(lfm2(), json!({"eos_token_id": [2, 7]}));
    assert_eq!(parse(&listed).0.eos_token_ids, [2, 7]);
    let generation = r#"{"eos_token_id": [7, 2], "bos_token_id": 3, "do_sample": true, "temperature": 0.3,
        "top_k": 50, "top_p": 0.9, "min_p": 0.15, "repetition_penalty": 1.05}"#;
    let (config, _) = Config::parse(&lfm2().to_string(), Some(generation)).unwrap();
    assert_eq!((config.eos_token_ids, config.bos_token_id), (vec![7, 2], Some(3)));
    let sampling = SamplingDefaults {
        do_sample: true,
        temperature: Some(0.3),
        top_k: Some(50),
        top_p: Some(0.9),
        min_p: Some(0.15),
        repetition_penalty: Some(1.05),
    };
    assert_eq!(config.sampling, sampling);
    let error = Config::parse(&lfm2().to_string(), Some(r#"{"top_p": 2}"#)).unwrap_err().to_string();
    assert_eq!(error, "generation_config.json: `top_p` must be a number from 0 to 1, found 2");
}

#[test]
fn a_first_token_outside_the_vocabulary_is_told_and_left_out() {
    let generation = r#"{"bos_token_id": 65536}"#;
    let (config, warnings) = Config::parse(&lfm2().to_string(), Some(generation)).unwrap();
    assert_eq!(config.bos_token_id, None);
    assert_eq!(warnings[0].to_string(), "`bos_token_id` names token 65536, outside the vocabulary of 65536");
}

#[test]
fn a_stop_token_outside_the_vocabulary_is_told() {
    let (_, warnings) = parse(&with(lfm2(), json!({"eos_token_id": 65536})));
    assert_eq!(warnings[0].to_string(), "`eos_token_id` names token 65536, outside the vocabulary of 65536");
}

#[test]
fn every_missing_field_is_named() {
    for field in ["model_type", "num_hidden_layers", "num_key_value_heads", "vocab_size"] {
        assert_eq!(refusal(&without(lfm2(), field)), format!("config.json: `{field}` is missing"));
    }
    for (field, spellings) in [
        ("hidden_size", "`hidden_size` or `block_dim`"),
        ("num_attention_heads", "`num_attention_heads` or `num_heads`"),
        ("intermediate_size", "`intermediate_size` or `block_ff_dim`"),
        ("layer_types", "`layer_types` or `full_attn_idxs`"),
    ] {
        assert_eq!(refusal(&without(lfm2(), field)), format!("config.json: {spellings} is missing"));
    }
    let no_sliding =
        json!({"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e6}}});
    assert_eq!(
        refusal(&with(lfm3(), no_sliding)),
        "config.json: `rope_parameters.sliding_attention` is missing"
    );
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let rope = |kind: &str| json!({"rope_parameters": {"rope_theta": 1e6, "rope_type": kind}});
    for (config, field, found) in [
        (with(lfm2(), json!({"attention_bias": true})), "attention_bias", "true"),
        (with(lfm2(), rope("yarn")), "rope_parameters.rope_type", "\"yarn\""),
        (with(lfm2(), json!({"rope_scaling": {"factor": 2.0}})), "rope_scaling", "{\"factor\":2.0}"),
        (with(lfm2(), json!({"layer_types": ["conv", "mamba", "conv"]})), "layer_types[1]", "\"mamba\""),
        (
            with(lfm2(), json!({"layer_types": ["conv", "conv", "sliding_attention"]})),
            "layer_types[2]",
            "\"sliding_attention\"",
        ),
    ] {
        let error = refusal(&config);
        assert!(error.starts_with(&format!("config.json: `{field}` {found} is not supported")), "{error}");
    }
    let error = refusal(&with(lfm2(), json!({"model_type": "lfm2_vl"})));
    assert!(error.contains("`model_type` is \"lfm2_vl\""), "{error}");
}

#[test]
fn nonsense_is_refused_with_what_was_expected_and_found() {
    for (config, field, found) in [
        (with(lfm2(), json!({"hidden_size": 0})), "hidden_size", "0"),
        (with(lfm2(), json!({"hidden_size": -4})), "hidden_size", "-4"),
        (with(lfm2(), json!({"hidden_size": 64.5})), "hidden_size", "64.5"),
        (with(lfm2(), json!({"hidden_size": "64"})), "hidden_size", "\"64\""),
        (with(lfm2(), json!({"hidden_size": 1000})), "num_attention_heads", "16"),
        (with(lfm2(), json!({"hidden_size": 16 * 63})), "head_dim", "63"),
        (with(lfm2(), json!({"head_dim": 128})), "head_dim", "128"),
        (with(lfm2(), json!({"vocab_size": u64::MAX})), "vocab_size", "18446744073709551615"),
        (with(lfm2(), json!({"num_hidden_layers": 1_000_000})), "num_hidden_layers", "1000000"),
        (with(lfm2(), json!({"num_key_value_heads": 3})), "num_key_value_heads", "3"),
        (with(lfm2(), json!({"num_hidden_layers": 4})), "layer_types", "3 kinds"),
        (with(lfm2(), json!({"layer_types": "conv"})), "layer_types", "\"conv\""),
        (with(lfm2(), json!({"layer_types": [1, 2, 3]})), "layer_types[0]", "1"),
        (with(without(lfm2(), "layer_types"), json!({"full_attn_idxs": [3]})), "full_attn_idxs", "[3]"),
        (with(lfm2(), json!({"conv_L_cache": 1})), "conv_L_cache", "1"),
        (with(lfm2(), json!({"norm_eps": 0.0})), "norm_eps", "0.0"),
        (with(lfm2(), json!({"conv_bias": "no"})), "conv_bias", "\"no\""),
        (with(lfm2(), json!({"eos_token_id": [7, -1]})), "eos_token_id", "[7,-1]"),
        (with(lfm2(), json!({"bos_token_id": 1.5})), "bos_token_id", "1.5"),
        (with(lfm2(), json!({"block_multiple_of": 0})), "block_multiple_of", "0"),
        (with(lfm2(), json!({"rope_parameters": 7})), "rope_parameters", "7"),
        (with(lfm3(), json!({"head_dim": 33})), "head_dim", "33"),
        (with(lfm3(), json!({"sliding_window": 0})), "sliding_window", "0"),
        (with(lfm3(), json!({"sliding_window": null})), "sliding_window", "null"),
    ] {
        let error = refusal(&config);
        assert!(error.starts_with(&format!("config.json: `{field}` must be ")), "{field}: {error}");
        assert!(error.ends_with(&format!("found {found}")), "{found}: {error}");
    }
}

#[test]
fn fields_without_effect_are_told() {
    let partial = json!({"rope_parameters": {"rope_theta": 1e6, "partial_rotary_factor": 0.5}});
    let (config, warnings) = parse(&with(lfm2(), partial));
    assert_eq!(config.full_rope.unwrap().kind, RopeKind::Default);
    assert!(warnings[0].to_string().contains("`rope_parameters.partial_rotary_factor` 0.5 is ignored"));
    let (_, warnings) = parse(&with(lfm3(), json!({"rope_theta": 5.0})));
    assert!(warnings[0].to_string().contains("`rope_theta` 5.0 is ignored"));
}

#[test]
fn text_that_is_no_json_object_is_refused() {
    for text in ["", "[]", "{\"model_type\": ", "null"] {
        let error = Config::parse(text, None).unwrap_err().to_string();
        assert!(error.starts_with("config.json is not a JSON object: "), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC*") {
        let _ = Config::parse(&text, None);
    }

    #[test]
    fn any_numbers_are_resolved_or_refused(
        hidden in 0..3000usize, heads in 0..40usize, kv_heads in 0..20usize, ffn in 0..9000usize, multiplier in -1.0..5.0f64,
    ) {
        let config = with(lfm2(), json!({
            "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "intermediate_size": ffn, "block_ffn_dim_multiplier": multiplier,
        }));
        if let Ok((config, _)) = Config::parse(&config.to_string(), None) {
            assert_eq!(config.heads * config.head_dim, hidden);
            assert_eq!(config.heads % config.kv_heads, 0);
            assert_eq!(config.ffn_size % 256, 0);
        }
    }
}

#[test]
fn what_would_change_the_arithmetic_is_refused_by_name() {
    let refused = |changes| refusal(&with(lfm2(), changes));
    assert_eq!(
        refused(json!({"quantization_config": {"bits": 4}})),
        "config.json: `quantization_config` {\"bits\":4} is not supported; weights are bf16, fp16 or fp32"
    );
    let activation = "is not supported; the feed-forward's activation is \"silu\"";
    assert_eq!(
        refused(json!({"hidden_act": "gelu"})),
        format!("config.json: `hidden_act` \"gelu\" {activation}")
    );
    assert_eq!(refused(json!({"hidden_act": 1})), format!("config.json: `hidden_act` 1 {activation}"));
    let same = json!({"hidden_act": "silu", "quantization_config": null});
    assert_eq!(parse(&with(lfm2(), same)), parse(&lfm2()));
}
