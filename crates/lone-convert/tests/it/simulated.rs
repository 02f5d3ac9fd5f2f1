//! Bundles on the simulated Neural Engine: what it makes of them with the precision rules, and without.

use lone_anesim::{AneSim, Faults};
use lone_bundle::Role;
use lone_convert::ConvertOptions;
use lone_lfm::Checkpoint;

use crate::golden::{Golden, least_cosine, logits_on, reference_logits};
use crate::support::{MODELS, convert_checkpoint, converted, wide_models, write_fake};

/// The least cosine of logits that `lone verify` accepts unless it is told otherwise.
const MIN_COSINE: f64 = 0.999;

#[test]
fn a_feed_forward_wider_than_4096_needs_the_rules() {
    let [_, model] = wide_models();
    let dir = write_fake(model);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let tokens: Vec<u32> = (0..20).map(|i| i * 13 % 300).collect();
    let expected = reference_logits(&checkpoint, &tokens);
    let similarity = |precision_rules: bool| {
        let options =
            ConvertOptions { precision_rules, ctx: vec![32], prefill: vec![10], ..ConvertOptions::default() };
        let bundle = convert_checkpoint(&checkpoint, &options);
        least_cosine(&logits_on(&AneSim::new(Faults::M1), &bundle, Role::Prefill, &tokens), &expected)
    };
    let (naive, ruled) = (similarity(false), similarity(true));
    assert!(naive < MIN_COSINE && ruled >= MIN_COSINE, "cosine {naive} without, {ruled} with the rules");
}

#[test]
fn with_the_rules_every_model_stays_near_transformers() {
    for model in MODELS {
        let golden = Golden::open(model).first(130);
        let options =
            ConvertOptions { ctx: vec![golden.tokens.len()], prefill: vec![16], ..ConvertOptions::default() };
        let bundle = converted(model, &options);
        for faults in [Faults::M1, Faults::M5] {
            let found = logits_on(&AneSim::new(faults), &bundle, Role::Prefill, &golden.tokens);
            golden.check(MIN_COSINE, &format!("{model} on {faults:?}"), &found);
        }
    }
}
