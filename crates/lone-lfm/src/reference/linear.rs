//! `y = x · Wᵀ + b` over weights that stay in the mapping: a block of rows is decoded, used for every token, dropped.
//!
//! Threads take runs of output channels. Sums are f32 in four lanes; tiles of 2 tokens by 4 channels keep eight of
//! them in registers.

use std::ops::Range;

use crate::Tensor;

const LANES: usize = 4;
const TILE_TOKENS: usize = 2;
const TILE_CHANNELS: usize = 4;

/// Weights decoded at a time: 256 KB, which a second-level cache holds.
const BLOCK_ELEMENTS: usize = 65536;

/// Below this many multiplications another thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 18;

/// How linear layers are run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    pub(super) threads: usize,
}

impl Linear {
    /// `x` is `(T, C)`, `weight` `(N, C)`, `bias` `(N)`, the result `(T, N)`.
    pub(super) fn apply(self, x: &[f32], weight: Tensor<'_>, bias: Option<Tensor<'_>>) -> Vec<f32> {
        let mut y = self.products(x, weight);
        if let Some(bias) = bias.map(|bias| bias.to_f32()) {
            for y in y.chunks_exact_mut(bias.len()) {
                y.iter_mut().zip(&bias).for_each(|(y, bias)| *y += bias);
            }
        }
        y
    }

    fn products(self, x: &[f32], weight: Tensor<'_>) -> Vec<f32> {
        let channels = weight.rows();
        let threads = self.threads.min(x.len() * channels / WORTH_A_THREAD);
        if threads <= 1 {
            return project(x, weight, 0..channels);
        }
        let run = channels.div_ceil(threads).next_multiple_of(TILE_CHANNELS);
        let runs = (0..channels).step_by(run).map(|start| start..channels.min(start + run));
        let mut y = vec![0.0; x.len() / weight.row_len() * channels];
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                runs.map(|run| (run.clone(), scope.spawn(move || project(x, weight, run)))).collect();
            for (run, worker) in workers {
                let part = worker.join().expect("projecting indexes only what it measured");
                let rows = y.chunks_exact_mut(channels).zip(part.chunks_exact(run.len()));
                rows.for_each(|(y, part)| y[run.clone()].copy_from_slice(part));
            }
        });
        y
    }
}

/// Output channels `run` for every token, `(T, run.len())`.
fn project(x: &[f32], weight: Tensor<'_>, run: Range<usize>) -> Vec<f32> {
    let width = weight.row_len();
    let channels = run.len();
    let block_rows = (BLOCK_ELEMENTS / width).next_multiple_of(TILE_CHANNELS).max(TILE_CHANNELS);
    let mut block = vec![0.0; block_rows.min(channels) * width];
    let mut y = vec![0.0; x.len() / width * channels];
    for start in run.clone().step_by(block_rows) {
        let rows = start..run.end.min(start + block_rows);
        let block = &mut block[..rows.len() * width];
        weight.read_rows_f32(rows, block);
        for (x, y) in x.chunks(TILE_TOKENS * width).zip(y.chunks_mut(TILE_TOKENS * channels)) {
            for (number, weights) in block.chunks(TILE_CHANNELS * width).enumerate() {
                let channel = start - run.start + number * TILE_CHANNELS;
                tile(x, weights, width, &mut y[channel..], channels);
            }
        }
    }
    y
}

/// Products of up to two tokens with up to four channels; token t's go to `y[t * stride..]`.
fn tile(x: &[f32], weights: &[f32], width: usize, y: &mut [f32], stride: usize) {
    if x.len() == TILE_TOKENS * width && weights.len() == TILE_CHANNELS * width {
        let x = std::array::from_fn(|token| &x[token * width..][..width]);
        let weights = std::array::from_fn(|channel| &weights[channel * width..][..width]);
        let sums: [[f32; TILE_CHANNELS]; TILE_TOKENS] = dots(x, weights);
        for (token, sums) in sums.iter().enumerate() {
            y[token * stride..][..TILE_CHANNELS].copy_from_slice(sums);
        }
        return;
    }
    for (token, x) in x.chunks_exact(width).enumerate() {
        for (channel, weights) in weights.chunks_exact(width).enumerate() {
            y[token * stride + channel] = dot(x, weights);
        }
    }
}

/// Sum of products of two rows of the same length.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let [[sum]] = dots([a], [b]);
    sum
}

/// The products of every row of `a` with every row of `b`; all rows are of one length.
fn dots<const A: usize, const B: usize>(a: [&[f32]; A], b: [&[f32]; B]) -> [[f32; B]; A] {
    let a = a.map(|row| row.as_chunks::<LANES>());
    let b = b.map(|row| row.as_chunks::<LANES>());
    let count = a[0].0.len();
    let (a_chunks, b_chunks) = (a.map(|(chunks, _)| &chunks[..count]), b.map(|(chunks, _)| &chunks[..count]));
    let mut lanes = [[[0.0; LANES]; B]; A];
    for chunk in 0..count {
        let a = a_chunks.map(|chunks| chunks[chunk]);
        let b = b_chunks.map(|chunks| chunks[chunk]);
        for i in 0..A {
            for j in 0..B {
                lanes[i][j] = add_products(lanes[i][j], a[i], b[j]);
            }
        }
    }
    let mut sums = [[0.0; B]; A];
    for i in 0..A {
        for j in 0..B {
            let tail: f32 = a[i].1.iter().zip(b[j].1).map(|(a, b)| a * b).sum();
            sums[i][j] = lanes[i][j].iter().sum::<f32>() + tail;
        }
    }
    sums
}

fn add_products(sums: [f32; LANES], a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
    std::array::from_fn(|lane| sums[lane] + a[lane] * b[lane])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_equals_its_dot_products_at_every_width() {
        for width in [1, 3, 4, 7, 64, 65] {
            let row = |seed: usize| -> Vec<f32> {
                (0..width).map(|k| ((seed * 31 + k * 17) % 13) as f32 - 6.0).collect()
            };
            let [a, b, c]: [Vec<f32>; 3] = std::array::from_fn(row);
            let exact = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            assert_eq!(
                dots([&a[..], &b[..]], [&c[..], &a[..]]),
                [[exact(&a, &c), exact(&a, &a)], [exact(&b, &c), exact(&b, &a)]]
            );
        }
    }
}
