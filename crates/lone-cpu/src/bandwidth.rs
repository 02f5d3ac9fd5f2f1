//! How fast this machine reads memory: what decoding is held against.

use std::hint::black_box;
use std::io;
use std::time::Instant;

use memmap2::MmapMut;

use crate::isa::{CACHE_LINE, Isa, Kernel, LANES, Simd};
use crate::pages::{self, Pages};
use crate::pool::Pool;

/// Bytes read: many times what caches hold.
const BYTES: usize = 256 << 20;

/// Parts that threads take.
const TASKS: usize = 64;

/// Memory to be read.
pub struct Memory {
    map: MmapMut,
    pages: Pages,
    isa: Isa,
}

impl Memory {
    /// 256 MiB in `pages`, to be read with the instructions of `isa`.
    ///
    /// # Errors
    /// As the operating system says when it has no memory left.
    pub fn new(pages: Pages, isa: Isa) -> io::Result<Self> {
        let mut map = pages::map(BYTES, pages)?;
        // Numbers that are slow nowhere, and pages that are all there.
        map.fill(1);
        Ok(Self { map, pages, isa })
    }

    /// Reads all of it once on the threads of `pool`.
    pub fn bytes_per_second(&self, pool: &Pool) -> f64 {
        let numbers: &[f32] = bytemuck::cast_slice(&self.map);
        let (share, ahead) = (numbers.len() / TASKS, self.pages.prefetch_distance());
        let mut sums = [0.0; TASKS];
        let start = Instant::now();
        pool.for_each_chunk(&mut sums, 1, |task, sum| {
            sum[0] = self.isa.run(Sum { numbers: &numbers[task * share..][..share], ahead });
        });
        let seconds = start.elapsed().as_secs_f64();
        black_box(sums);
        BYTES as f64 / seconds
    }
}

/// `Σ numbers`, fetched as weights are.
struct Sum<'a> {
    numbers: &'a [f32],
    ahead: usize,
}

impl Kernel for Sum<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let mut sums = [simd.splat(0.0); 4];
        for blocks in self.numbers.as_chunks::<{ 4 * LANES }>().0 {
            for line in 0..size_of_val(blocks) / CACHE_LINE {
                simd.prefetch(blocks.as_ptr().wrapping_byte_add(self.ahead + line * CACHE_LINE));
            }
            for (sum, block) in sums.iter_mut().zip(blocks.as_chunks().0) {
                *sum = simd.add(*sum, simd.load(block));
            }
        }
        simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3])))
    }
}
