//! How fast the kernels are: `cargo bench -p lone-cpu`, on every instruction set this CPU has.
//!
//! Weights are walked through from one call to the next, so that they come from memory and not from a cache, as
//! they do in a model. Run on a machine that has nothing else to do.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use half::f16;
use lone_cpu::kernels::{Attention, Blend, Columns, PastSegment, VisibleKeys};
use lone_cpu::{Isa, Kernels, Pool, cores};

/// Rows and cols of LFM2-350M's `w1`.
const ROWS: usize = 4608;
const COLS: usize = 1024;

/// Matrices to walk through: more than caches hold.
const MATRICES: usize = 16;

fn main() {
    divan::main();
}

fn isas() -> impl Iterator<Item = Isa> {
    Isa::available().skip(usize::from(Isa::available().count() > 1))
}

fn pool() -> Pool {
    Pool::new(cores::physical_cores())
}

/// Weights that are not all alike, for [`MATRICES`] matrices.
fn weights() -> Vec<f16> {
    (0..ROWS * COLS * MATRICES)
        .map(|i| f16::from_bits((i.wrapping_mul(40_503) >> 5 & 0x3BFF) as u16))
        .collect()
}

/// The bandwidth to hold `matvec_f16` against: every weight read once, eight bytes at a time.
#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let (pool, weights) = (pool(), weights());
    let words: Vec<u64> = weights
        .chunks_exact(4)
        .map(|w| w.iter().fold(0, |word, w| word << 16 | u64::from(w.to_bits())))
        .collect();
    let mut sums = vec![0; 64];
    let mut matrices = words.chunks_exact(ROWS * COLS / 4).cycle();
    bencher.counter(BytesCount::of_many::<f16>(ROWS * COLS)).bench_local(|| {
        let matrix = matrices.next().expect("a cycle has no end");
        let share = matrix.len() / sums.len();
        pool.for_each_chunk(&mut sums, 1, |i, sum| {
            sum[0] = matrix[i * share..][..share].iter().fold(0, |a, b| a ^ b)
        });
        black_box(&sums);
    });
}

#[divan::bench(args = isas())]
fn matvec_f16(bencher: Bencher<'_, '_>, isa: &Isa) {
    let (kernels, pool, weights) = (Kernels::with_isa(*isa), pool(), weights());
    let (x, mut y) = (vec![0.5; COLS], vec![0.0; ROWS]);
    let mut matrices = weights.chunks_exact(ROWS * COLS).cycle();
    bencher.counter(BytesCount::of_many::<f16>(ROWS * COLS)).bench_local(|| {
        let matrix = matrices.next().expect("a cycle has no end");
        kernels.matvec_f16(&pool, matrix, &x, &mut y, Blend::SET);
        black_box(&y);
    });
}

/// Items are floating-point operations.
#[divan::bench(args = isas(), consts = [4, 17, 64])]
fn matmul_f16<const S: usize>(bencher: Bencher<'_, '_>, isa: &Isa) {
    let (kernels, pool, weights) = (Kernels::with_isa(*isa), pool(), weights());
    let (x, mut y) = (vec![0.5; COLS * S], vec![0.0; ROWS * S]);
    let mut scratch = vec![0.0; Kernels::matmul_scratch_len(COLS, S)];
    let mut matrices = weights.chunks_exact(ROWS * COLS).cycle();
    bencher.counter(ItemsCount::new(2 * ROWS * COLS * S)).bench_local(|| {
        let matrix = matrices.next().expect("a cycle has no end");
        kernels.matmul_f16(&pool, matrix, Columns::dense(&x, S), &mut y, Blend::SET, &mut scratch);
        black_box(&y);
    });
}

/// LFM3-1.7B's attention with a full past of 4096 rows; bytes are those of the cache.
#[divan::bench(args = isas(), consts = [1, 17, 64])]
fn attention<const S: usize>(bencher: Bencher<'_, '_>, isa: &Isa) {
    const PAST: usize = 4096;
    let (heads, groups, head_dim) = (16, 4, 128);
    let (kernels, pool) = (Kernels::with_isa(*isa), pool());
    let (queries, new) = (vec![0.1; heads * S * head_dim], vec![0.1; groups * S * head_dim]);
    let cache = vec![f16::from_f32(0.1); groups * PAST * head_dim];
    let past = [PastSegment { keys: &cache, values: &cache, rows: PAST }];
    let hidden = f16::from_f32(-40000.0);
    let causal = |i: usize| if i % (PAST + S) <= PAST + i / (PAST + S) { f16::ZERO } else { hidden };
    let mask: Vec<f16> = (0..S * (PAST + S)).map(causal).collect();
    let mut visible = VisibleKeys::with_capacity(S);
    visible.read(&mask, PAST + S);
    let attention = Attention {
        heads,
        groups,
        head_dim,
        scale: 0.088,
        queries: &queries,
        past: &past,
        new_keys: &new,
        new_values: &new,
        mask: &mask,
        visible: &visible,
    };
    let mut out = vec![0.0; queries.len()];
    let mut scratch = vec![0.0; Kernels::attention_scratch_len(heads, groups, head_dim, S, pool.threads())];
    bencher.counter(BytesCount::of_many::<f16>(2 * cache.len())).bench_local(|| {
        kernels.attention(&pool, &attention, &mut out, &mut scratch);
        black_box(&out);
    });
}

#[divan::bench(args = isas())]
fn gated_silu(bencher: Bencher<'_, '_>, isa: &Isa) {
    let (kernels, pool) = (Kernels::with_isa(*isa), pool());
    let (gate, up, mut out) = (vec![0.5; ROWS], vec![0.25; ROWS], vec![0.0; ROWS]);
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        kernels.gated_silu(&pool, &gate, &up, &mut out);
        black_box(&out);
    });
}

#[divan::bench(args = isas())]
fn rms_norm(bencher: Bencher<'_, '_>, isa: &Isa) {
    let kernels = Kernels::with_isa(*isa);
    let (x, weight, mut out) = (vec![0.5; COLS], vec![1.0; COLS], vec![0.0; COLS]);
    bencher.counter(ItemsCount::new(COLS)).bench_local(|| {
        kernels.rms_norm(&x, &weight, 1e-5, 1, &mut out);
        black_box(&out);
    });
}

/// One fork and join of tasks that do nothing.
#[divan::bench]
fn join(bencher: Bencher<'_, '_>) {
    let pool = pool();
    bencher.bench_local(|| {
        pool.run(black_box(8), |task| {
            black_box(task);
        })
    });
}
