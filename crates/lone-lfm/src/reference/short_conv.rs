//! The gated short convolution: `C * conv(B * u)`, with `B, C, u` the three thirds of `in_proj(x)`. `out_proj` comes
//! behind it.

use super::linear::Linear;
use crate::checkpoint::ConvTensors;
use crate::{Config, Tensor};

/// `x` and the result are `(T, D)`, sequence after sequence.
pub(super) fn forward(
    config: &Config,
    tensors: &ConvTensors<Tensor<'_>>,
    linear: Linear<'_>,
    x: &[f32],
    lengths: &[usize],
) -> Vec<f32> {
    let width = config.hidden_size;
    let projected = linear.apply(x, tensors.in_proj, tensors.in_proj_bias);
    let taps = Taps {
        count: config.conv_taps,
        weights: tensors.conv.to_f32(),
        bias: tensors.conv_bias.map_or_else(|| vec![0.0; width], |bias| bias.to_f32()),
    };
    let mut y = vec![0.0; x.len()];
    let mut start = 0;
    for length in lengths {
        let rows = start..start + length;
        taps.convolve(
            &projected[rows.start * 3 * width..rows.end * 3 * width],
            &mut y[rows.start * width..rows.end * width],
        );
        start = rows.end;
    }
    y
}

/// K weights a channel, `(D, K)`, oldest first, and a bias `(D)`.
struct Taps {
    count: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Taps {
    /// One sequence: `projected` is `(T, 3D)`, `y` `(T, D)`.
    fn convolve(&self, projected: &[f32], y: &mut [f32]) {
        let width = self.bias.len();
        let mut gated_inputs = vec![0.0; y.len()];
        for (v, bcu) in gated_inputs.chunks_exact_mut(width).zip(projected.chunks_exact(3 * width)) {
            let (b, u) = (&bcu[..width], &bcu[2 * width..]);
            v.iter_mut().zip(b.iter().zip(u)).for_each(|(v, (b, u))| *v = b * u);
        }
        for (t, y) in y.chunks_exact_mut(width).enumerate() {
            y.copy_from_slice(&self.bias);
            // Tap k reads the input K-1-k tokens back; in front of the sequence there are zeros.
            for k in (self.count - 1).saturating_sub(t)..self.count {
                let source = t + k - (self.count - 1);
                let v = &gated_inputs[source * width..][..width];
                let tap = self.weights.iter().skip(k).step_by(self.count);
                y.iter_mut().zip(v.iter().zip(tap)).for_each(|(y, (v, tap))| *y += tap * v);
            }
            let c = &projected[t * 3 * width + width..][..width];
            y.iter_mut().zip(c).for_each(|(y, c)| *y *= c);
        }
    }
}
