//! RMSNorm: `w * x / sqrt(mean(x²) + eps)`.

use crate::Tensor;

/// Norms every row of `x`, `(rows, C)`, in place; `weight` is `(C)`. Squares are summed in f64.
pub(super) fn rms_norm(x: &mut [f32], weight: Tensor<'_>, eps: f32) {
    let weight = weight.to_f32();
    for row in x.chunks_exact_mut(weight.len()) {
        let squares: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let mean = (squares / row.len() as f64) as f32;
        let scale = 1.0 / (mean + eps).sqrt();
        row.iter_mut().zip(&weight).for_each(|(x, weight)| *x = weight * (*x * scale));
    }
}
