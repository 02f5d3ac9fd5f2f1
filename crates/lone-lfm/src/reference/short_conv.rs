//! The gated short convolution: `out_proj(C * conv(B * u))`, with `B, C, u` the three thirds of `in_proj(x)`.

use super::linear::Linear;
use crate::checkpoint::ConvTensors;
use crate::{Config, Tensor};

/// `x` and the result are `(T, D)`.
pub(super) fn forward(
    config: &Config,
    tensors: &ConvTensors<Tensor<'_>>,
    linear: Linear<'_>,
    x: &[f32],
) -> Vec<f32> {
    let (width, taps) = (config.hidden_size, config.conv_taps);
    let weight = tensors.conv.to_f32();
    let bias = tensors.conv_bias.map_or_else(|| vec![0.0; width], |bias| bias.to_f32());
    linear.reads(&[tensors.in_proj], x);
    let projected = linear.apply(x, tensors.in_proj, tensors.in_proj_bias);
    let mut gated_inputs = vec![0.0; x.len()];
    for (v, bcu) in gated_inputs.chunks_exact_mut(width).zip(projected.chunks_exact(3 * width)) {
        let (b, u) = (&bcu[..width], &bcu[2 * width..]);
        v.iter_mut().zip(b.iter().zip(u)).for_each(|(v, (b, u))| *v = b * u);
    }
    let mut y = vec![0.0; x.len()];
    for (t, y) in y.chunks_exact_mut(width).enumerate() {
        y.copy_from_slice(&bias);
        // Tap k reads the input K-1-k tokens back; in front of the sequence there are zeros.
        for k in (taps - 1).saturating_sub(t)..taps {
            let source = t + k - (taps - 1);
            let v = &gated_inputs[source * width..][..width];
            let tap = weight.iter().skip(k).step_by(taps);
            y.iter_mut().zip(v.iter().zip(tap)).for_each(|(y, (v, tap))| *y += tap * v);
        }
        let c = &projected[t * 3 * width + width..][..width];
        y.iter_mut().zip(c).for_each(|(y, c)| *y *= c);
    }
    linear.reads(&[tensors.out_proj], &y);
    linear.apply(&y, tensors.out_proj, tensors.out_proj_bias)
}
