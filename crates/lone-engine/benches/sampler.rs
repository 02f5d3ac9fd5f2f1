//! How long choosing a token takes: `cargo bench -p lone-engine`.
//!
//! A vocabulary of 128 000, settings that people use. To be held against a decode step, of which it is a part.

use std::hint::black_box;

use divan::Bencher;
use lone_engine::{Sampler, Sampling};

const VOCAB: usize = 128_000;

/// Tokens said and read before, for penalties to count.
const HISTORY: u32 = 2_000;

fn main() {
    divan::main();
}

/// Logits as spread out as a model's, the likeliest tokens all over the vocabulary.
fn logits() -> Vec<f32> {
    let scattered = |i: usize| (i.wrapping_mul(2_654_435_761) >> 7) % 10_007;
    (0..VOCAB).map(|i| 20.0 * (scattered(i) as f32 / 10_007.0).powi(8) - 10.0).collect()
}

#[divan::bench(args = ["greedy", "top-k 50, top-p 0.9", "top-k 50, top-p 0.9, penalties", "top-p 0.9", "all"])]
fn choose(bencher: Bencher<'_, '_>, settings: &str) {
    let has = |part| settings.contains(part);
    let sampling = Sampling {
        temperature: if has("greedy") { 0.0 } else { 0.8 },
        top_k: if has("top-k") { 50 } else { 0 },
        top_p: if has("top-p") { 0.9 } else { 1.0 },
        repetition_penalty: if has("penalties") { 1.1 } else { 1.0 },
        presence_penalty: if has("penalties") { 0.1 } else { 0.0 },
        frequency_penalty: if has("penalties") { 0.1 } else { 0.0 },
        seed: Some(1),
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(sampling, VOCAB).expect("settings in range");
    sampler.read_prompt(&(0..HISTORY).map(|i| i * 61 % VOCAB as u32).collect::<Vec<_>>());
    let logits = logits();
    bencher.bench_local(|| sampler.choose(black_box(&logits)).expect("logits to choose from"));
}
