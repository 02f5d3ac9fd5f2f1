//! A model of four layers made for tests: a bundle that describes it, a backend that runs it, and what it should say.
//!
//! [`backend`] computes a pass from what the engine hands it; [`reference`] computes a whole sequence from its tokens
//! alone. Both round to fp16 where a bundle's ports do and compute in f64 between, so they agree to the last bit
//! unless the engine is at fault.

mod backend;
mod bundle;
mod reference;

use std::path::PathBuf;

use half::f16;
use lone_bundle::Role;

use crate::{LoadOptions, Runtime};

pub(crate) use backend::FakeBackend;
pub(crate) use bundle::bundle;
pub(crate) use reference::reference;

/// D = H · d, with H = G = 2 and d = 2.
const HIDDEN: usize = 4;
const HEADS: usize = 2;
const HEAD_DIM: usize = 2;
const TAPS: usize = 3;
pub(crate) const VOCAB: usize = 11;

/// What differs between the bundles of tests.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) contexts: Vec<usize>,
    pub(crate) window: usize,
    /// Whether the sliding layer's cache is a ring.
    pub(crate) ring: bool,
    pub(crate) shapes: Vec<(Role, usize)>,
    /// Widths of the heads.
    pub(crate) heads: Vec<usize>,
    /// Most rows an input may have.
    pub(crate) segment_rows: usize,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            contexts: vec![40],
            window: 6,
            ring: true,
            shapes: vec![(Role::Decode, 1), (Role::Prefill, 8), (Role::Verify, 4)],
            heads: vec![1, 4],
            segment_rows: 1000,
        }
    }
}

impl Spec {
    /// A directory with the bundle's description and embeddings.
    pub(crate) fn write(&self) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let table: Vec<f16> = (0..VOCAB as u32).flat_map(embedding).map(f16::from_f64).collect();
        std::fs::write(dir.path().join("embeddings.bin"), bytemuck::cast_slice(&table)).unwrap();
        bundle(self).save(dir.path()).unwrap();
        dir
    }

    pub(crate) fn load(&self) -> Runtime {
        self.load_with(&LoadOptions { keep_layer_outputs: true, ..LoadOptions::default() })
    }

    pub(crate) fn load_with(&self, options: &LoadOptions) -> Runtime {
        let dir = self.write();
        Runtime::load(dir.path(), &FakeBackend::new(bundle(self)), options).unwrap()
    }
}

/// Index of the graph in a package's path.
fn graph_index(bundle: &lone_bundle::Bundle, package: &std::path::Path) -> usize {
    let name = PathBuf::from(package.file_name().unwrap());
    bundle.graphs.iter().position(|graph| name.as_os_str() == graph.package.as_str()).unwrap()
}

fn embedding(token: u32) -> [f64; HIDDEN] {
    std::array::from_fn(|row| rounded(weight(token as usize, row)))
}

/// Numbers in (-1, 1) without a pattern.
fn weight(a: usize, b: usize) -> f64 {
    (12.9898 * (a as f64 + 1.0) + 78.233 * (b as f64 + 1.0)).sin()
}

fn rounded(value: f64) -> f64 {
    f16::from_f64(value).to_f64()
}

/// The convolution's taps, oldest first.
fn convolve(channel: usize, layer: usize, inputs: [f64; TAPS]) -> f64 {
    let taps = inputs.iter().enumerate().map(|(tap, input)| input * weight(layer + 10 * tap, channel));
    taps.sum::<f64>().tanh()
}

/// `rot(x)` of one head's two numbers.
fn rotate([a, b]: [f64; HEAD_DIM], cos: f64, sin: f64) -> [f64; HEAD_DIM] {
    [a * cos - b * sin, b * cos + a * sin]
}

/// Softmax-weighted mean of values over (score, value).
fn attend(keys: impl Iterator<Item = (f64, [f64; HEAD_DIM])>) -> [f64; HEAD_DIM] {
    let (mut total, mut sum) = (0.0, [0.0; HEAD_DIM]);
    for (score, value) in keys {
        let weight = score.exp();
        total += weight;
        sum = [sum[0] + weight * value[0], sum[1] + weight * value[1]];
    }
    sum.map(|element| element / total)
}

fn norm(hidden: [f64; HIDDEN]) -> [f64; HIDDEN] {
    let mean = hidden.iter().map(|x| x * x).sum::<f64>() / HIDDEN as f64;
    hidden.map(|x| x / (mean + 1e-5).sqrt())
}

fn logit(token: usize, hidden: &[f64; HIDDEN]) -> f64 {
    hidden.iter().enumerate().map(|(row, x)| 3.0 * x * weight(token + 20, row)).sum()
}
