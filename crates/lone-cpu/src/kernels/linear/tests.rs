//! Tests of linear layers.

mod int16;

use std::fmt;
use std::num::NonZeroUsize;

use half::bf16;

use int16::Rounded;

use super::*;
use crate::isa::{HighBytes, TwelveBitsChunk};
use crate::kernels::{IndexBits, Palettized};
use crate::testing::{Numbers, SUM_OF_PRODUCTS, assert_near, every_isa};

const BLENDS: [Blend; 3] = [Blend::SET, Blend::ADD, Blend { alpha: 0.0625, accumulate: true }];

/// The product at `row` and `column` in f64, and the sum of its terms' absolute values.
fn product(w: &[f16], x: Columns<'_>, cols: usize, row: usize, column: usize) -> (f64, f64) {
    let term = |k: usize| f64::from(w[row * cols + k].to_f32()) * f64::from(x.row(k)[column]);
    (0..cols).map(term).fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}

/// Asserts that `y` is `before` blended with `w x`.
fn assert_product(y: &[f32], before: &[f32], w: &[f16], x: Columns<'_>, blend: Blend, what: &str) {
    let cols = w.len() / (y.len() / x.columns);
    for (i, (&y, &before)) in y.iter().zip(before).enumerate() {
        let (sum, size) = product(w, x, cols, i / x.columns, i % x.columns);
        let before = if blend.accumulate { f64::from(before) } else { 0.0 };
        let alpha = f64::from(blend.alpha);
        assert_near(
            y,
            before + alpha * sum,
            SUM_OF_PRODUCTS * (alpha * size + before.abs()),
            &format!("{what} at {i}"),
        );
    }
}

fn pools() -> [Pool; 2] {
    [1, 3].map(|threads| Pool::new(NonZeroUsize::new(threads).unwrap()))
}

#[test]
fn matvec_is_the_product_for_odd_shapes_and_every_blend() {
    let mut numbers = Numbers::seeded(9);
    for (rows, cols) in [(1, 1), (3, 16), (17, 33), (130, 100), (64, 1024), (5, 4608)] {
        let (w, x, before) =
            (numbers.f16s(rows * cols, 1.0), numbers.f32s(cols, 2.0), numbers.f32s(rows, 5.0));
        for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
            for blend in BLENDS {
                let mut y = before.clone();
                kernels.matvec(&pool, Weights::F16(&w), &x, &mut y, blend);
                let what = format!("matvec_f16.{} {rows} x {cols} {blend:?}", kernels.isa());
                assert_product(&y, &before, &w, Columns::dense(&x, 1), blend, &what);
            }
        }
    }
}

#[test]
fn matmul_is_the_product_for_odd_shapes_and_every_number_of_columns() {
    let mut numbers = Numbers::seeded(10);
    let shapes = (1..=26).map(|columns| (20, 40, columns)).chain([
        (1, 1, 2),
        (33, 300, 17),
        (16, 513, 64),
        (48, 64, 150),
        (21, 64, 5),
        (18, 79, 7),
        (37, 112, 13),
        (20, 125, 6),
        (19, 191, 48),
        (9, 1087, 25),
        (6, 2111, 49),
        (7, 15, 12),
        (5, 4000, 3),
    ]);
    for (rows, cols, columns) in shapes {
        let (w, before) = (numbers.f16s(rows * cols, 1.0), numbers.f32s(rows * columns, 5.0));
        let stride = columns + columns % 3;
        let data = numbers.f32s((cols - 1) * stride + columns, 2.0);
        let x = Columns { data: &data, columns, stride };
        let mut scratch = vec![f32::NAN; Kernels::matmul_scratch_len(cols, columns)];
        for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
            let blend = BLENDS[columns % BLENDS.len()];
            let mut y = before.clone();
            kernels.matmul(&pool, Weights::F16(&w), x, &mut y, blend, &mut scratch);
            let what = format!("matmul_f16.{} {rows} x {cols} x {columns} {blend:?}", kernels.isa());
            assert_product(&y, &before, &w, x, blend, &what);
        }
    }
}

#[test]
fn a_layer_without_inputs_gives_zero() {
    for kernels in every_isa() {
        let (mut y, mut columns) = ([1.0; 3], [1.0; 6]);
        kernels.matvec(&pools()[0], Weights::F16(&[]), &[], &mut y, Blend::SET);
        let none = Columns::dense(&[], 2);
        kernels.matmul(&pools()[0], Weights::F16(&[]), none, &mut columns, Blend::SET, &mut []);
        assert_eq!((y, columns), ([0.0; 3], [0.0; 6]));
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut numbers = Numbers::seeded(11);
    let (rows, cols, pools) = (600, 1024, pools());
    // Even of the smallest form there is more than one task, and tasks begin amid the rows of a palette.
    assert!(rows_per_task(rows, cols * 4 / 8, pools[1].threads()) < rows);
    let f16s = numbers.f16s(rows * cols, 1.0);
    let palettes = FORMS.map(|form| Palettes::random(form, rows, cols, 7, &mut numbers).scaled(rows));
    let short = &palettes[3];
    let twelve_bits = InTwelveBits::of(short, cols).unwrap();
    let rounded = Rounded::of(Palettes::random(FORMS[3], rows, cols, 7, &mut numbers));
    let forms = [Weights::F16(&f16s), twelve_bits.matrix(short), rounded.matrix()];
    for w in forms.into_iter().chain(palettes.iter().map(Palettes::matrix)) {
        for (kernels, columns) in every_isa().flat_map(|kernels| [1, 3, 5, 49].map(|s| (kernels, s))) {
            let x = numbers.f32s(cols * columns, 1.0);
            let mut scratch = vec![0.0; Kernels::matmul_scratch_len(cols, columns)];
            let [one, other] = [&pools[0], &pools[1]].map(|pool| {
                let mut y = vec![0.0; rows * columns];
                kernels.matmul(pool, w, Columns::dense(&x, columns), &mut y, Blend::SET, &mut scratch);
                y
            });
            assert!(one == other, "{} x {columns}", kernels.isa());
        }
    }
}

/// A matrix of random palettes and indices, and the weights it stands for.
struct Palettes {
    form: Form,
    indices: Vec<u8>,
    palettes: Vec<f16>,
    group_rows: usize,
    scales: Option<Vec<f16>>,
    weights: Vec<f16>,
}

impl Palettes {
    fn random(form: Form, rows: usize, cols: usize, group_rows: usize, numbers: &mut Numbers) -> Self {
        let bits = form.bits;
        let groups = rows.div_ceil(group_rows);
        let mut palettes = numbers.f16s(groups * bits.entries(), 1.0);
        if form.short {
            palettes
                .iter_mut()
                .for_each(|entry| *entry = f16::from_f32(bf16::from_f32(entry.to_f32()).to_f32()));
        }
        let mut stream = vec![0u8; rows * cols * bits.bits() / 8];
        let mut weights = Vec::new();
        for i in 0..rows * cols {
            let index = ((numbers.next() + 1.0) / 2.0 * bits.entries() as f32) as usize % bits.entries();
            for bit in 0..bits.bits() {
                let at = i * bits.bits() + bit;
                stream[at / 8] |= ((index >> bit & 1) as u8) << (at % 8);
            }
            weights.push(palettes[i / cols / group_rows * bits.entries() + index]);
        }
        Self { form, indices: stream, palettes, group_rows, scales: None, weights }
    }

    /// Rows multiplied with powers of two, which f16 holds exactly.
    fn scaled(mut self, rows: usize) -> Self {
        let scales: Vec<f16> = (0..rows).map(|row| f16::from_f32([0.5, 1.0, 4.0][row % 3])).collect();
        let cols = self.weights.len() / rows;
        for (weights, scale) in self.weights.chunks_mut(cols).zip(&scales) {
            weights.iter_mut().for_each(|w| *w = f16::from_f32(w.to_f32() * scale.to_f32()));
        }
        self.scales = Some(scales);
        self
    }

    fn matrix(&self) -> Weights<'_> {
        Weights::Palettized(Palettized {
            bits: self.form.bits,
            indices: &self.indices,
            palettes: &self.palettes,
            group_rows: self.group_rows,
            short: self.form.short,
            scales: self.scales.as_deref(),
        })
    }
}

/// How a matrix is palettized.
#[derive(Clone, Copy)]
struct Form {
    bits: IndexBits,
    short: bool,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.short { "short " } else { "" }, self.bits)
    }
}

const FORMS: [Form; 6] = [
    Form { bits: IndexBits::Four, short: false },
    Form { bits: IndexBits::Four, short: true },
    Form { bits: IndexBits::Six, short: false },
    Form { bits: IndexBits::Six, short: true },
    Form { bits: IndexBits::Eight, short: false },
    Form { bits: IndexBits::Eight, short: true },
];

#[test]
fn every_index_stands_for_its_entry_exactly() {
    let mut numbers = Numbers::seeded(12);
    for form in FORMS {
        let (rows, cols) = (5, 140);
        let palettes = Palettes::random(form, rows, cols, 2, &mut numbers);
        for (kernels, column) in every_isa().flat_map(|kernels| (0..cols).map(move |c| (kernels, c))) {
            let (mut x, mut y) = (vec![0.0; cols], vec![0.0; rows]);
            x[column] = 1.0;
            kernels.matvec_rows(palettes.matrix(), 0, &x, &mut y, Blend::SET);
            let expected: Vec<f32> =
                palettes.weights[column..].iter().step_by(cols).map(|w| w.to_f32()).collect();
            assert_eq!(y, expected, "{form}.{} column {column}", kernels.isa());
        }
    }
}

#[test]
fn palettized_products_are_those_of_the_weights_they_stand_for() {
    let mut numbers = Numbers::seeded(13);
    let shapes = [
        (1, 4, 1),
        (3, 16, 3),
        (17, 36, 16),
        (28, 100, 14),
        (130, 128, 16),
        (20, 516, 20),
        (12, 124, 4),
        (33, 192, 1),
    ];
    for (form, (rows, cols, group)) in FORMS.into_iter().flat_map(|form| shapes.map(|shape| (form, shape))) {
        let mut palettes = Palettes::random(form, rows, cols, group, &mut numbers);
        if rows % 2 == 1 {
            palettes = palettes.scaled(rows);
        }
        for columns in [1, 2, 5, 17] {
            let (data, before) = (numbers.f32s(cols * columns, 2.0), numbers.f32s(rows * columns, 5.0));
            let x = Columns::dense(&data, columns);
            let blend = BLENDS[columns % BLENDS.len()];
            let mut scratch = vec![f32::NAN; Kernels::matmul_scratch_len(cols, columns)];
            for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
                let what = format!("{form}.{} {rows} x {cols} x {columns} by {group}", kernels.isa());
                let mut y = before.clone();
                match columns {
                    1 => kernels.matvec(&pool, palettes.matrix(), &data, &mut y, blend),
                    _ => kernels.matmul(&pool, palettes.matrix(), x, &mut y, blend, &mut scratch),
                }
                assert_product(&y, &before, &palettes.weights, x, blend, &what);
            }
        }
    }
}

/// The same as bf16 numbers in twelve bits each.
struct InTwelveBits {
    chunks: Vec<TwelveBitsChunk>,
    high_bytes: Vec<HighBytes>,
}

impl InTwelveBits {
    fn of(palettes: &Palettes, cols: usize) -> Option<Self> {
        let Weights::Palettized(matrix) = palettes.matrix() else { unreachable!("a palettized matrix") };
        let high_bytes = matrix.high_bytes(cols)?;
        let mut chunks = vec![[0; 96]; palettes.weights.len() / 64];
        // In two parts, as threads do it.
        let (first, rest) = chunks.split_at_mut(cols / 64);
        matrix.write_twelve_bits(&high_bytes, cols, 0, first);
        matrix.write_twelve_bits(&high_bytes, cols, 1, rest);
        Some(InTwelveBits { chunks, high_bytes })
    }

    fn matrix<'a>(&'a self, palettes: &'a Palettes) -> Weights<'a> {
        let (group_rows, scales) = (palettes.group_rows, palettes.scales.as_deref());
        Weights::TwelveBits(TwelveBits {
            chunks: &self.chunks,
            high_bytes: &self.high_bytes,
            group_rows,
            scales,
        })
    }
}

#[test]
fn products_of_twelve_bits_are_those_of_the_palettes_they_were_made_of() {
    let mut numbers = Numbers::seeded(16);
    let forms = FORMS.into_iter().filter(|form| form.short);
    let shapes = [(1, 64, 1), (5, 128, 2), (33, 192, 1), (130, 64, 16), (20, 1088, 20)];
    for (form, (rows, cols, group)) in forms.flat_map(|form| shapes.map(|shape| (form, shape))) {
        let mut palettes = Palettes::random(form, rows, cols, group, &mut numbers);
        if rows % 2 == 1 {
            palettes = palettes.scaled(rows);
        }
        let twelve_bits = InTwelveBits::of(&palettes, cols).unwrap();
        for columns in [1, 2, 5, 17, 50] {
            let (data, before) = (numbers.f32s(cols * columns, 2.0), numbers.f32s(rows * columns, 5.0));
            let x = Columns::dense(&data, columns);
            let blend = BLENDS[columns % BLENDS.len()];
            let mut scratch = vec![f32::NAN; Kernels::matmul_scratch_len(cols, columns)];
            for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
                let what =
                    format!("{form} in 12 bits.{} {rows} x {cols} x {columns} by {group}", kernels.isa());
                let (mut y, matrix) = (before.clone(), twelve_bits.matrix(&palettes));
                match columns {
                    1 => kernels.matvec(&pool, matrix, &data, &mut y, blend),
                    _ => kernels.matmul(&pool, matrix, x, &mut y, blend, &mut scratch),
                }
                assert_product(&y, &before, &palettes.weights, x, blend, &what);
            }
        }
    }
}

#[test]
fn what_does_not_fit_into_twelve_bits_is_not_brought_there() {
    let random = |form, cols| Palettes::random(form, 2, cols, 1, &mut Numbers::seeded(17));
    let [long, short] = [FORMS[4], FORMS[5]];
    assert!(InTwelveBits::of(&random(short, 64), 64).is_some());
    assert!(InTwelveBits::of(&random(long, 64), 64).is_none(), "entries of more than sixteen bits");
    assert!(InTwelveBits::of(&random(short, 96), 96).is_none(), "rows that are not whole chunks");
    assert!(InTwelveBits::of(&random(short, 0), 0).is_none(), "rows without columns");
    let mut palettes = random(short, 64);
    let powers = (-24..16).map(|power| f16::from_f32(2f32.powi(power)));
    palettes.palettes[256..].iter_mut().zip(powers).for_each(|(entry, power)| *entry = power);
    assert!(InTwelveBits::of(&palettes, 64).is_none(), "more than sixteen high bytes");
}

#[test]
fn columns_that_are_not_there_do_not_count_whatever_entry_0_is() {
    let mut numbers = Numbers::seeded(14);
    for form in FORMS {
        let mut palettes = Palettes::random(form, 2, 4, 2, &mut numbers);
        palettes.palettes[0] = f16::INFINITY;
        palettes.indices.fill(0b0101_0101);
        for kernels in every_isa() {
            let mut y = [0.0; 2];
            kernels.matvec_rows(palettes.matrix(), 0, &[1.0; 4], &mut y, Blend::SET);
            assert!(y.iter().all(|y| y.is_finite()), "{form}.{}: {y:?}", kernels.isa());
        }
    }
}

#[test]
#[should_panic(expected = "every row has a palette")]
fn a_row_without_a_palette_is_refused() {
    let mut palettes = Palettes::random(FORMS[0], 4, 8, 2, &mut Numbers::seeded(15));
    palettes.palettes.truncate(16);
    Kernels::detect().matvec(&pools()[0], palettes.matrix(), &[0.0; 8], &mut [0.0; 4], Blend::SET);
}

#[test]
#[should_panic(expected = "rows of indices are whole bytes")]
fn rows_that_end_amid_a_byte_are_refused() {
    let mut palettes = Palettes::random(FORMS[2], 1, 4, 1, &mut Numbers::seeded(17));
    palettes.indices.truncate(1);
    Kernels::detect().matvec(&pools()[0], palettes.matrix(), &[1.0], &mut [0.0], Blend::SET);
}
