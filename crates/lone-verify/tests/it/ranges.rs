//! Ranges of the values that bundles compute.

use lone_bundle::Role;
use lone_lfm::Stage;
use lone_mil::{Interpreter, Reference};
use lone_verify::{RangeWatch, Ranges, Record, Risk};

use crate::support::{Converted, record};

fn ranges(converted: &Converted, tokens: &[u32]) -> Ranges {
    let interpreter = Interpreter::<Reference>::new();
    let watch = RangeWatch::new(&interpreter);
    let mut runtime = converted.load(&watch, Role::Decode);
    let like = Record { tokens: tokens.into(), positions: vec![], states: vec![], logits: vec![] };
    record(&mut runtime, Role::Decode, &like);
    watch.ranges()
}

#[test]
fn every_value_is_watched_and_what_is_watched_is_what_is_computed() {
    let converted = Converted::new("tiny-lfm3");
    let tokens = &converted.golden().tokens[..12];
    let ranges = ranges(&converted, tokens);
    assert_eq!(ranges.at_risk().collect::<Vec<_>>(), []);
    // The outputs of the layers are among them; the reference knows how large those are.
    let reference = Record::of_checkpoint(&converted.checkpoint, tokens).unwrap();
    for layer in [0, 3, 6] {
        let name = if layer == 3 { "hidden_out".to_owned() } else { format!("layer_{layer}") };
        let range = ranges.values().iter().find(|range| {
            range.value == name && range.package == format!("chunk_{:02}.mlpackage", layer / 4)
        });
        let largest = reference.state(Stage::Layer(layer)).unwrap().iter().fold(0f32, |m, x| m.max(x.abs()));
        let found = range.unwrap().largest;
        assert!((found - largest).abs() <= 0.01 * largest, "layer {layer}: {found}, not {largest}");
    }
}

#[test]
fn a_residual_stream_that_grows_is_seen() {
    let converted = Converted::new("tiny-lfm2");
    let ranges = ranges(&converted, &converted.golden().tokens[..40]);
    let largest = ranges.largest().unwrap();
    assert!(largest.largest > 1000.0, "{largest:?}");
    let risks: Vec<_> = ranges.at_risk().collect();
    assert!(risks.iter().all(|(_, risk)| *risk != Risk::Overflow), "{risks:?}");
}
