//! Rounded activations, for sums along rows.

use super::{LARGEST, PAIR, SMALLEST, WordRows, WordWidth, place};
use crate::isa::{Aligned, Isa, Kernel, LANES, Simd};

/// Some columns of x, each with zeros up to a whole pair of chunks.
#[derive(Default)]
pub(crate) struct RoundedX {
    /// `(S, pairs)`
    pub(super) pairs: Vec<Aligned<[i16; PAIR]>>,
    /// `(S, pairs)`
    pub(super) steps: Vec<f32>,
    /// S
    pub(super) columns: usize,
}

impl RoundedX {
    /// No columns.
    pub(crate) const fn new() -> Self {
        Self { pairs: Vec::new(), steps: Vec::new(), columns: 0 }
    }

    /// Rounds `x (S, cols)` for `weights`.
    pub(crate) fn fill<B: WordWidth>(
        &mut self,
        isa: Isa,
        weights: WordRows<'_, B>,
        x: &[f32],
        columns: usize,
    ) {
        let cols = weights.cols;
        let pairs = columns * cols.div_ceil(PAIR);
        self.pairs.resize_with(pairs, || Aligned([0; PAIR]));
        self.steps.resize(pairs, 0.0);
        self.columns = columns;
        isa.run(Fill { x, cols, by_fours: B::BY_FOURS, to: self });
    }
}

struct Fill<'a> {
    x: &'a [f32],
    cols: usize,
    by_fours: bool,
    to: &'a mut RoundedX,
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { x, cols, by_fours, to } = self;
        let x = x.chunks_exact(cols.max(1)).flat_map(|column| column.chunks(PAIR));
        for ((x, pair), step) in x.zip(&mut to.pairs).zip(&mut to.steps) {
            let mut padded = Aligned([0.0; PAIR]);
            padded.0[..x.len()].copy_from_slice(x);
            if by_fours {
                let x = padded.0;
                for (at, to) in padded.0.iter_mut().enumerate() {
                    *to = x[place(true, at)];
                }
            }
            *step = round(simd, &padded.0, &mut pair.0);
        }
    }
}

/// Rounds numbers to multiples of the step it returns, which is NaN if they are not all finite.
#[inline(always)]
fn round<S: Simd>(simd: S, x: &[f32; PAIR], to: &mut [i16; PAIR]) -> f32 {
    let (mut largest, mut nan) = (simd.splat(SMALLEST), simd.splat(0.0));
    for x in x.as_chunks::<LANES>().0 {
        let x = simd.load(x);
        largest = simd.max(largest, simd.max(x, simd.sub(simd.splat(0.0), x)));
        nan = simd.add(nan, simd.sub(x, x));
    }
    let step = simd.largest(largest) / f32::from(LARGEST) + simd.sum(nan);
    let inverse = simd.splat(1.0 / step);
    for (x, to) in x.as_chunks::<LANES>().0.iter().zip(to.as_chunks_mut::<LANES>().0) {
        simd.store_rounded(simd.mul(simd.load(x), inverse), to);
    }
    step
}
