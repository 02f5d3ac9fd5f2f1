//! `y = x · Wᵀ + b` over weights that stay in the mapping: a block of rows is decoded, used for every token, dropped.
//!
//! Threads take runs of output channels.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis};

use super::Substitute;
use crate::Tensor;

const LANES: usize = 16;

/// Weights decoded at a time: 512 KB, which a second-level cache holds; but rows enough for a matrix product, which
/// rearranges the tokens once for each block.
const BLOCK_ELEMENTS: usize = 1 << 17;
const LEAST_BLOCK_ROWS: usize = 32;
const MOST_BLOCK_ROWS: usize = 512;

/// Below this many multiplications another thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 18;

/// How linear layers are run.
#[derive(Clone, Copy)]
pub(super) struct Linear<'w> {
    pub(super) threads: usize,
    /// Asked for every matrix.
    pub(super) substitute: Option<&'w dyn Substitute>,
}

impl Linear<'_> {
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
        let source = Source { weight, substitute: self.substitute };
        let channels = weight.rows();
        let threads = self.threads.min(x.len() * channels / WORTH_A_THREAD);
        if threads <= 1 {
            return project(source, x, 0..channels);
        }
        let run = channels.div_ceil(threads).next_multiple_of(LEAST_BLOCK_ROWS);
        let runs = (0..channels).step_by(run).map(|start| start..channels.min(start + run));
        let mut y = vec![0.0; x.len() / weight.row_len() * channels];
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                runs.map(|run| (run.clone(), scope.spawn(move || project(source, x, run)))).collect();
            for (run, worker) in workers {
                let part = worker.join().expect("projecting indexes only what it measured");
                let rows = y.chunks_exact_mut(channels).zip(part.chunks_exact(run.len()));
                rows.for_each(|(y, part)| y[run.clone()].copy_from_slice(part));
            }
        });
        y
    }
}

/// Where the rows of a matrix come from.
#[derive(Clone, Copy)]
struct Source<'w> {
    weight: Tensor<'w>,
    substitute: Option<&'w dyn Substitute>,
}

impl Source<'_> {
    fn read_rows(self, rows: Range<usize>, out: &mut [f32]) {
        let substituted =
            |substitute: &dyn Substitute| substitute.read_rows_f32(&self.weight, rows.clone(), &mut *out);
        if !self.substitute.is_some_and(substituted) {
            self.weight.read_rows_f32(rows, out);
        }
    }
}

/// Output channels `run` for every token, `(T, run.len())`.
fn project(source: Source<'_>, x: &[f32], run: Range<usize>) -> Vec<f32> {
    let width = source.weight.row_len();
    let x = ArrayView2::from_shape((x.len() / width, width), x).expect("activations are rows of C");
    let few_rows = x.nrows().clamp(LEAST_BLOCK_ROWS, MOST_BLOCK_ROWS);
    let block_rows = (BLOCK_ELEMENTS / width).max(few_rows).min(run.len());
    let mut block = vec![0.0; block_rows * width];
    let mut y = Array2::zeros((x.nrows(), run.len()));
    let strips = y.axis_chunks_iter_mut(Axis(1), block_rows);
    for (start, mut y) in run.clone().step_by(block_rows).zip(strips) {
        let rows = start..run.end.min(start + block_rows);
        let block = &mut block[..rows.len() * width];
        source.read_rows(rows.clone(), block);
        let weights = ArrayView2::from_shape((rows.len(), width), &*block).expect("a block is rows of C");
        general_mat_mul(1.0, &x, &weights.t(), 0.0, &mut y);
    }
    y.into_raw_vec_and_offset().0
}

/// Sum of products of two rows of the same length.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_tail) = a.as_chunks::<LANES>();
    let (b, b_tail) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        sums = std::array::from_fn(|lane| sums[lane] + a[lane] * b[lane]);
    }
    sums.iter().sum::<f32>() + a_tail.iter().zip(b_tail).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_is_whole_at_every_width() {
        for width in [1, 3, 4, 7, 64, 65] {
            let row = |seed: usize| -> Vec<f32> {
                (0..width).map(|k| ((seed * 31 + k * 17) % 13) as f32 - 6.0).collect()
            };
            let (a, b) = (row(0), row(1));
            assert_eq!(dot(&a, &b), a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>());
        }
    }
}
