//! How fast the kernels are: `cargo bench -p lone-cpu`, on every instruction set this CPU has.
//!
//! Weights are walked through from one call to the next, so that they come from memory and not from a cache, as
//! they do in a model. Run on a machine that has nothing else to do.

use std::fmt;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use half::f16;
use lone_cpu::kernels::{
    Attention, Blend, Columns, IndexBits, Int16Palettized, Palettized, PastSegment, TwelveBits, VisibleKeys,
    Weights,
};
use lone_cpu::{Isa, Kernels, Pool, cores};

/// Rows and cols of LFM2-350M's `w1`.
const ROWS: usize = 4608;
const COLS: usize = 1024;

/// Bytes to walk through: more than caches hold.
const WEIGHT_BYTES: usize = 16 * ROWS * COLS * size_of::<f16>();

fn main() {
    divan::main();
}

fn isas() -> impl Iterator<Item = Isa> {
    Isa::available().skip(usize::from(Isa::available().count() > 1))
}

fn pool() -> Pool {
    Pool::new(cores::physical_cores())
}

/// How weights are held.
#[derive(Clone, Copy)]
enum Form {
    F16,
    TwelveBits,
    Palettized(IndexBits),
    /// Multiplied as whole numbers of 16 bits.
    Int16(IndexBits),
}

impl Form {
    fn bits(self) -> usize {
        match self {
            Form::F16 => 16,
            Form::TwelveBits => 12,
            Form::Palettized(bits) | Form::Int16(bits) => bits.bits(),
        }
    }

    /// Bytes of a matrix, palettes not counted.
    fn matrix_bytes(self) -> usize {
        ROWS * COLS * self.bits() / 8
    }
}

/// What a linear layer is measured with.
struct Arm {
    isa: Isa,
    form: Form,
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::F16 => write!(f, "f16.{}", self.isa),
            Form::TwelveBits => write!(f, "twelve_bits.{}", self.isa),
            Form::Palettized(bits) => write!(f, "{bits}.{}", self.isa),
            Form::Int16(bits) => write!(f, "{bits}.int16.{}", self.isa),
        }
    }
}

fn arms() -> Vec<Arm> {
    let widths = [IndexBits::Eight, IndexBits::Six, IndexBits::Four];
    let exact = [Form::F16, Form::TwelveBits].into_iter().chain(widths.map(Form::Palettized));
    let forms = |isa: Isa| {
        let rounded = widths.map(Form::Int16).into_iter().filter(move |_| isa.has_fast_int16());
        exact.clone().chain(rounded).map(move |form| Arm { isa, form })
    };
    isas().flat_map(forms).collect()
}

/// Many matrices, none like another.
struct Matrices {
    numbers: Vec<f16>,
    /// Rounded palettes.
    entries: Vec<i16>,
}

impl Matrices {
    fn new() -> Self {
        let bits = |i: usize| (i.wrapping_mul(40_503) >> 5 & 0x3BF8) as u16;
        Self {
            numbers: (0..WEIGHT_BYTES / size_of::<f16>()).map(|i| f16::from_bits(bits(i))).collect(),
            entries: (0..ROWS / 16 * 256).map(|i| bits(i) as i16 % 4096).collect(),
        }
    }

    /// One after the other, without end; sixteen rows have a palette.
    fn cycle(&self, form: Form) -> impl Iterator<Item = Weights<'_>> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.numbers);
        bytes.chunks_exact(form.matrix_bytes()).cycle().map(move |matrix| match form {
            Form::F16 => Weights::F16(bytemuck::cast_slice(matrix)),
            Form::TwelveBits => Weights::TwelveBits(TwelveBits {
                chunks: matrix.as_chunks().0,
                high_bytes: &[[0x3c; 16]; ROWS / 16],
                group_rows: 16,
                scales: None,
            }),
            Form::Palettized(bits) => Weights::Palettized(self.palettized(matrix, bits)),
            Form::Int16(bits) => Weights::Int16(Int16Palettized {
                exact: self.palettized(matrix, bits),
                entries: &self.entries[..ROWS / 16 * bits.entries()],
                steps: &[1.0; ROWS / 16],
            }),
        })
    }

    fn palettized<'a>(&'a self, indices: &'a [u8], bits: IndexBits) -> Palettized<'a> {
        Palettized {
            bits,
            indices,
            palettes: &self.numbers[..ROWS / 16 * bits.entries()],
            group_rows: 16,
            short: true,
            scales: None,
        }
    }
}

/// The bandwidth to hold `matvec` against: every weight read once, eight bytes at a time.
#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let (pool, matrices) = (pool(), Matrices::new());
    let words: &[u64] = bytemuck::cast_slice(&matrices.numbers);
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

#[divan::bench(args = arms())]
fn matvec(bencher: Bencher<'_, '_>, arm: &Arm) {
    let (kernels, pool, matrices) = (Kernels::with_isa(arm.isa), pool(), Matrices::new());
    let (x, mut y) = (vec![0.5; COLS], vec![0.0; ROWS]);
    let mut weights = matrices.cycle(arm.form);
    bencher.counter(BytesCount::new(arm.form.matrix_bytes())).bench_local(|| {
        let matrix = weights.next().expect("a cycle has no end");
        kernels.matvec(&pool, matrix, &x, &mut y, Blend::SET);
        black_box(&y);
    });
}

/// Items are floating-point operations.
#[divan::bench(args = arms(), consts = [4, 17, 64])]
fn matmul<const S: usize>(bencher: Bencher<'_, '_>, arm: &Arm) {
    let (kernels, pool, matrices) = (Kernels::with_isa(arm.isa), pool(), Matrices::new());
    let (x, mut y) = (vec![0.5; COLS * S], vec![0.0; ROWS * S]);
    let mut scratch = vec![0.0; Kernels::matmul_scratch_len(COLS, S)];
    let mut weights = matrices.cycle(arm.form);
    bencher.counter(ItemsCount::new(2 * ROWS * COLS * S)).bench_local(|| {
        let matrix = weights.next().expect("a cycle has no end");
        kernels.matmul(&pool, matrix, Columns::dense(&x, S), &mut y, Blend::SET, &mut scratch);
        black_box(&y);
    });
}

/// LFM3-1.7B's attention with a full past of 16 384 rows; bytes are those of the cache.
#[divan::bench(args = isas(), consts = [1, 17, 64])]
fn attention<const S: usize>(bencher: Bencher<'_, '_>, isa: &Isa) {
    const PAST: usize = 16_384;
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
