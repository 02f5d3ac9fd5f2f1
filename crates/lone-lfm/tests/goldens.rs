//! The reference forward against transformers' f32 states and logits; `tools/golden/` regenerates them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use lone_lfm::{Checkpoint, Reference, Stage};
use safetensors::SafeTensors;
use serde_json::Value;

const MODELS: [&str; 6] = [
    "tiny-lfm2",
    "tiny-lfm3",
    "micro/lfm2-old-config",
    "micro/lfm2-untied-bias-f32",
    "micro/lfm3-plain-sharded-f16",
    "micro/lfm3-window8",
];

/// Largest difference of a logit.
const LOGIT_TOLERANCE: f32 = 2e-4;
/// Largest difference of a hidden state, relative to the largest magnitude of its row.
const HIDDEN_TOLERANCE: f32 = 2e-5;
/// Within this margin of the likeliest token, rounding decides which comes first.
const NEAR_TIE: f32 = 1e-3;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

/// golden.safetensors, decoded.
struct Golden {
    tokens: Vec<u32>,
    /// Positions that rows belong to.
    positions: Vec<usize>,
    hidden: Vec<Vec<f32>>,
    logits: Vec<f32>,
}

impl Golden {
    fn open(model: &Path, layer_count: usize) -> Golden {
        let bytes = std::fs::read(model.join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let words = |name: &str| -> Option<Vec<[u8; 4]>> {
            Some(
                file.tensor(name).ok()?.data().chunks_exact(4).map(|word| word.try_into().unwrap()).collect(),
            )
        };
        let floats =
            |name: &str| words(name).unwrap().into_iter().map(f32::from_le_bytes).collect::<Vec<_>>();
        let tokens: Vec<u32> = words("tokens").unwrap().into_iter().map(u32::from_le_bytes).collect();
        let positions = match words("positions") {
            Some(words) => words.into_iter().map(|word| u32::from_le_bytes(word) as usize).collect(),
            None => (0..tokens.len()).collect(),
        };
        let hidden = (0..=layer_count).map(|stage| floats(&format!("hidden.{stage}"))).collect();
        Golden { tokens, positions, hidden, logits: floats("logits") }
    }

    /// Which `hidden.N` a stage is; the last layer's raw output is not stored.
    fn stage(&self, stage: Stage) -> Option<&[f32]> {
        let last = self.hidden.len() - 1;
        match stage {
            Stage::Embeddings => Some(&self.hidden[0]),
            Stage::Layer(layer) if layer + 1 < last => Some(&self.hidden[layer + 1]),
            Stage::Layer(_) => None,
            Stage::Final => Some(&self.hidden[last]),
        }
    }
}

/// Largest of some magnitudes; one that is NaN fails the test instead of hiding.
fn largest(magnitudes: impl Iterator<Item = f32>) -> f32 {
    magnitudes.inspect(|magnitude| assert!(magnitude.is_finite())).fold(0.0, f32::max)
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    largest(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

#[test]
fn the_reference_forward_repeats_transformers_layer_by_layer() {
    for name in MODELS {
        let checkpoint = Checkpoint::open(&model(name)).unwrap();
        let width = checkpoint.config().hidden_size;
        let golden = Golden::open(checkpoint.dir(), checkpoint.config().layers.len());
        let reference = Reference::new(&checkpoint);
        let mut stages = 0;
        let hidden = reference
            .hidden(&golden.tokens, |stage, x| {
                let Some(expected) = golden.stage(stage) else { return };
                stages += 1;
                for (&position, expected) in golden.positions.iter().zip(expected.chunks_exact(width)) {
                    let found = difference(&x[position * width..][..width], expected);
                    let allowed = HIDDEN_TOLERANCE * largest(expected.iter().map(|x| x.abs()));
                    assert!(found <= allowed, "{name}, {stage:?}, position {position}: {found} > {allowed}");
                }
            })
            .unwrap();
        assert_eq!(stages, golden.hidden.len(), "{name}");

        let wanted: Vec<f32> =
            golden.positions.iter().flat_map(|&p| hidden[p * width..][..width].to_vec()).collect();
        let (mut rows, mut worst) = (0, 0f32);
        reference.logits(&wanted, |row, logits| {
            assert_eq!(row, rows);
            rows += 1;
            worst = worst.max(difference(logits, &golden.logits[row * logits.len()..][..logits.len()]));
        });
        assert_eq!(rows, golden.positions.len(), "{name}");
        assert!(worst <= LOGIT_TOLERANCE, "{name}: logits differ by {worst}");
    }
}

#[test]
fn sequences_that_go_together_stop_in_front_of_every_matrix_and_end_as_each_alone() {
    for name in MODELS {
        let checkpoint = Checkpoint::open(&model(name)).unwrap();
        let reference = Reference::new(&checkpoint);
        let sequences: [Vec<u32>; 3] = [(0..40).collect(), vec![5], (9..30).collect()];
        let mut passage = reference.passage(&sequences).unwrap();
        for layer in 0..checkpoint.config().layers.len() {
            let mut stopped = Vec::new();
            while passage.layer(&reference) == layer {
                let readers = passage.readers(&reference);
                assert!(readers.iter().all(|matrix| passage.read().len() == 62 * matrix.row_len()));
                stopped.extend(readers.iter().map(|matrix| matrix.name().to_owned()));
                reference.advance(&mut passage);
            }
            let mut matrices = Vec::new();
            checkpoint.layer(layer).map(|tensor| {
                let is_matrix = tensor.shape().len() == 2;
                matrices.extend(is_matrix.then(|| tensor.name().to_owned()));
            });
            stopped.sort();
            matrices.sort();
            assert_eq!(stopped, matrices, "{name}");
        }
        let alone = sequences.map(|tokens| reference.hidden(&tokens, |_, _| {}).unwrap()).concat();
        let off = largest(passage.read().iter().zip(&alone).map(|(a, b)| (a - b).abs()));
        assert!(off <= HIDDEN_TOLERANCE * largest(alone.iter().map(|x| x.abs())), "{name}: {off}");
    }
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Every continuation, given its prompt and what precedes it, token by token.
#[test]
fn greedy_continuations_are_the_likeliest_tokens() {
    for name in ["tiny-lfm2", "tiny-lfm3"] {
        let checkpoint = Checkpoint::open(&model(name)).unwrap();
        let width = checkpoint.config().hidden_size;
        let reference = Reference::new(&checkpoint);
        let text = std::fs::read_to_string(model(name).join("greedy.json")).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(cases.len(), 100);
        for case in &cases {
            let (prompt, continuation) = (ids(&case["prompt_ids"]), ids(&case["continuation_ids"]));
            assert_eq!(continuation.last(), Some(&7), "{name}: an answer ends its turn");
            let tokens = [&prompt[..], &continuation[..continuation.len() - 1]].concat();
            let hidden = reference.hidden(&tokens, |_, _| {}).unwrap();
            reference.logits(&hidden[(prompt.len() - 1) * width..], |row, logits| {
                let expected = logits[continuation[row] as usize];
                let margin = largest_logit(logits) - expected;
                assert!(margin <= NEAR_TIE, "{name}: token {row} of {continuation:?} is {margin} behind");
            });
        }
    }
}

fn largest_logit(logits: &[f32]) -> f32 {
    assert!(logits.iter().all(|logit| logit.is_finite()));
    logits.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}
