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
    let reference = Record::of_checkpoint(&converted.checkpoint, tokens, &()).unwrap();
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

/// The residual stream of tiny-lfm2 is some hundreds at most positions, and thousands at a few.
#[test]
fn the_one_position_where_the_residual_stream_is_enormous_is_seen() {
    let converted = Converted::new("tiny-lfm2");
    let tokens = converted.golden().tokens;
    let reference = Record::of_checkpoint(&converted.checkpoint, &tokens, &()).unwrap();
    let magnitude = |row: &[f32]| row.iter().fold(0f32, |most, x| most.max(x.abs()));
    let width = converted.checkpoint.config().hidden_size;
    let rows = reference.state(Stage::Layer(7)).unwrap().chunks_exact(width).map(magnitude);
    let (position, largest) = rows.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!(largest > 5000.0, "{largest} at {position}");
    let ranges = ranges(&converted, &tokens[..=position]);
    let residual = ranges.values().iter().find(|range| range.value == "layer_7").unwrap();
    assert!((residual.largest - largest).abs() <= 0.01 * largest, "{residual:?}, not {largest}");
    let nearest = ranges.largest().unwrap();
    assert_eq!((nearest.op, nearest.limit), ("conv", Some(32_768.0)), "{nearest:?}");
    let risks: Vec<_> = ranges.at_risk().collect();
    assert!(risks.iter().all(|(_, risk)| *risk == Risk::Subnormal), "{risks:?}");
}
