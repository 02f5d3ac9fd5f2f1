//! How fast this machine multiplies and adds: what prefill and verify passes are held against.

use std::hint::black_box;
use std::time::Instant;

use crate::isa::{Isa, Kernel, LANES, Simd};
use crate::pool::Pool;

/// Multiply-adds of blocks that a task makes.
const BLOCKS: usize = 12 << 15;

/// Parts that threads take.
const TASKS: usize = 64;

/// Multiply-adds of f32 a second on the threads of `pool` with the instructions of `isa`, all numbers in registers.
pub fn multiply_adds_per_second(pool: &Pool, isa: Isa) -> f64 {
    let mut sums = [0.0; TASKS];
    let start = Instant::now();
    pool.for_each_chunk(&mut sums, 1, |_, sum| {
        sum[0] = isa.run(Chains { factor: black_box(0.5) });
    });
    let seconds = start.elapsed().as_secs_f64();
    black_box(sums);
    (TASKS * BLOCKS * LANES) as f64 / seconds
}

/// So many chains that none waits for itself, all in registers: twelve registers, whether they hold a block or half of
/// one.
struct Chains {
    factor: f32,
}

impl Kernel for Chains {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        match S::TILE_COLUMNS {
            12.. => self.run_chains::<S, 12>(simd),
            _ => self.run_chains::<S, 6>(simd),
        }
    }
}

impl Chains {
    #[inline(always)]
    fn run_chains<S: Simd, const N: usize>(self, simd: S) -> f32 {
        let factor = simd.splat(self.factor);
        let mut chains = [simd.splat(1.0); N];
        for _ in 0..BLOCKS / N {
            for chain in &mut chains {
                *chain = simd.mul_add(*chain, factor, factor);
            }
        }
        simd.sum(chains.into_iter().fold(simd.splat(0.0), |sum, chain| simd.add(sum, chain)))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    #[test]
    fn a_processor_makes_between_a_million_and_a_trillion_multiply_adds_a_second() {
        for isa in Isa::available() {
            let rate = multiply_adds_per_second(&Pool::new(NonZeroUsize::MIN), isa);
            assert!((1e6..1e12).contains(&rate), "{isa}: {rate}");
        }
    }
}
