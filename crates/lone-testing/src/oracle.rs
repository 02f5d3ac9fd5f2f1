//! What operations mean, in as few lines of f64 loops as possible: slow, plain and independent of every backend.

use half::f16;

/// Numbers between -1 and 1 that fp16 holds exactly, the same ones for the same seed.
pub fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 40) as i32 % 1024) as f32 / 1024.0
        })
        .collect()
}

/// The nearest fp16 values: what a tensor of them holds.
pub fn to_halves(values: impl IntoIterator<Item = f32>) -> Vec<f32> {
    values.into_iter().map(|value| f16::from_f32(value).to_f32()).collect()
}

/// A convolution over two spatial axes: x (N,C,H,W), weight (O,C/groups,KH,KW) -> (N,O,H',W').
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the letters of the shapes, and MIL's names")]
pub struct Conv2d {
    pub n: usize,
    pub c: usize,
    pub h: usize,
    pub w: usize,
    pub o: usize,
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    /// Before and after the height, before and after the width.
    pub pad: [usize; 4],
    pub dilations: [usize; 2],
    pub groups: usize,
}

impl Conv2d {
    /// A kernel of one element.
    pub fn pointwise(c: usize, w: usize, o: usize) -> Self {
        Conv2d {
            n: 1,
            c,
            h: 1,
            w,
            o,
            kernel: [1, 1],
            strides: [1, 1],
            pad: [0; 4],
            dilations: [1, 1],
            groups: 1,
        }
    }

    /// H' and W'.
    pub fn out(&self) -> [usize; 2] {
        [0, 1].map(|axis| {
            let extent = [self.h, self.w][axis] + self.pad[2 * axis] + self.pad[2 * axis + 1];
            (extent - (self.kernel[axis] - 1) * self.dilations[axis] - 1) / self.strides[axis] + 1
        })
    }

    /// The result, row-major.
    pub fn run(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let [out_h, out_w] = self.out();
        let mut out = Vec::new();
        for n in 0..self.n {
            for o in 0..self.o {
                for y in 0..out_h {
                    for z in 0..out_w {
                        out.push(
                            (bias.map_or(0.0, |bias| bias[o].into()) + self.sum(x, weight, n, o, [y, z]))
                                as f32,
                        );
                    }
                }
            }
        }
        out
    }

    fn sum(&self, x: &[f32], weight: &[f32], n: usize, o: usize, at: [usize; 2]) -> f64 {
        let (per_group, [kh, kw]) = (self.c / self.groups, self.kernel);
        let group = o / (self.o / self.groups);
        let mut sum = 0.0;
        for c in 0..per_group {
            for i in 0..kh {
                for j in 0..kw {
                    let row = (at[0] * self.strides[0] + i * self.dilations[0]).wrapping_sub(self.pad[0]);
                    let column = (at[1] * self.strides[1] + j * self.dilations[1]).wrapping_sub(self.pad[2]);
                    if row < self.h && column < self.w {
                        let x = x[((n * self.c + group * per_group + c) * self.h + row) * self.w + column];
                        sum += f64::from(x) * f64::from(weight[((o * per_group + c) * kh + i) * kw + j]);
                    }
                }
            }
        }
        sum
    }
}

/// x (M,K) times y (K,N).
pub fn matmul(x: &[f32], y: &[f32], [m, k, n]: [usize; 3]) -> Vec<f32> {
    let mut out = Vec::new();
    for i in 0..m {
        for j in 0..n {
            let terms = (0..k).map(|l| f64::from(x[i * k + l]) * f64::from(y[l * n + j]));
            out.push(terms.sum::<f64>() as f32);
        }
    }
    out
}

/// (M,N) with its axes swapped.
pub fn transpose<T: Copy>(x: &[T], m: usize, n: usize) -> Vec<T> {
    (0..n).flat_map(|j| (0..m).map(move |i| x[i * n + j])).collect()
}

/// Softmax of one row.
pub fn softmax(row: &[f64]) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|x| (x - max).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// Attention of one head: query (L,E), key (S,E), value (S,V), mask (L,S) to add -> (L,V).
pub fn attention(
    query: &[f32],
    key: &[f32],
    value: &[f32],
    mask: &[f32],
    [l, s, e, v]: [usize; 4],
) -> Vec<f32> {
    let scores = matmul(query, &transpose(key, s, e), [l, e, s]);
    let mut out = Vec::new();
    for i in 0..l {
        let row =
            (0..s).map(|j| f64::from(scores[i * s + j]) / (e as f64).sqrt() + f64::from(mask[i * s + j]));
        let shares = softmax(&row.collect::<Vec<_>>());
        out.extend(
            (0..v).map(|k| (0..s).map(|j| shares[j] * f64::from(value[j * v + k])).sum::<f64>() as f32),
        );
    }
    out
}

/// Values below `2^bits` as a bit stream, lowest bits first.
pub fn pack(values: &[u8], bits: usize) -> Vec<u8> {
    let mut bytes = vec![0; (values.len() * bits).div_ceil(8)];
    for (i, value) in values.iter().enumerate() {
        for bit in 0..bits {
            let at = i * bits + bit;
            bytes[at / 8] |= (value >> bit & 1) << (at % 8);
        }
    }
    bytes
}
