//! Tests of rounded weights and activations.

use super::*;
use crate::kernels::RoundedPalettes;

/// A matrix of random palettes and indices, and the same rounded.
pub(super) struct Rounded {
    palettes: Palettes,
    rounded: RoundedPalettes,
}

impl Rounded {
    pub(super) fn of(palettes: Palettes) -> Self {
        let rounded = RoundedPalettes::of(&palettes.palettes, palettes.form.bits).unwrap();
        Self { palettes, rounded }
    }

    pub(super) fn matrix(&self) -> Weights<'_> {
        let Weights::Palettized(exact) = self.palettes.matrix() else { unreachable!("a palettized matrix") };
        Weights::Int16(Int16Palettized { exact, entries: &self.rounded.entries, steps: &self.rounded.steps })
    }
}

/// Largest error of an entry, as a part of the largest of its palette.
const ENTRY_ERROR: f64 = 0.5 / 4095.0;

/// Largest error of an activation, as a part of the largest of its column.
const X_ERROR: f64 = 0.5 / 4095.0;

fn run(kernels: Kernels, pool: &Pool, w: Weights<'_>, x: Columns<'_>, y: &mut [f32], blend: Blend) {
    let cols = x.data.len() / x.columns;
    let mut scratch = vec![f32::NAN; Kernels::matmul_scratch_len(cols, x.columns)];
    match x.columns {
        1 => kernels.matvec(pool, w, x.data, y, blend),
        _ => kernels.matmul(pool, w, x, y, blend, &mut scratch),
    }
}

#[test]
fn products_are_near_those_of_the_weights_they_stand_for() {
    let mut numbers = Numbers::seeded(18);
    let shapes = [(1, 4, 1), (3, 16, 3), (17, 36, 16), (28, 100, 14), (130, 128, 16), (20, 516, 20)];
    let shapes = shapes.into_iter().chain([(12, 124, 4), (33, 192, 1), (18, 1100, 5)]);
    for (form, (rows, cols, group)) in
        FORMS.into_iter().flat_map(|form| shapes.clone().map(move |shape| (form, shape)))
    {
        let mut palettes = Palettes::random(form, rows, cols, group, &mut numbers);
        if rows % 2 == 1 {
            palettes = palettes.scaled(rows);
        }
        let matrix = Rounded::of(palettes);
        let largest_scale = if rows % 2 == 1 { 4.0 } else { 1.0 };
        for columns in [1, 2, 3, 4, 5, 17, 40] {
            let (data, before) = (numbers.f32s(cols * columns, 2.0), numbers.f32s(rows * columns, 5.0));
            let (x, blend) = (Columns::dense(&data, columns), BLENDS[columns % BLENDS.len()]);
            for (kernels, pool) in every_isa().flat_map(|kernels| pools().map(|pool| (kernels, pool))) {
                let what = format!("{form}.{} {rows} x {cols} x {columns} by {group}", kernels.isa());
                let mut y = before.clone();
                run(kernels, &pool, matrix.matrix(), x, &mut y, blend);
                for (i, (&y, &before)) in y.iter().zip(&before).enumerate() {
                    let (sum, size) = product(&matrix.palettes.weights, x, cols, i / columns, i % columns);
                    // Entries are below 1, x below 2; each is off by so much at most.
                    let off = largest_scale * cols as f64 * (2.0 * ENTRY_ERROR + 2.0 * X_ERROR);
                    let before = if blend.accumulate { f64::from(before) } else { 0.0 };
                    let alpha = f64::from(blend.alpha);
                    let tolerance = alpha * off + SUM_OF_PRODUCTS * (alpha * size + before.abs());
                    assert_near(y, before + alpha * sum, tolerance, &format!("{what} at {i}"));
                }
            }
        }
    }
}

#[test]
fn what_is_not_rounded_is_exact_and_every_index_and_column_has_its_place() {
    let mut numbers = Numbers::seeded(19);
    let (rows, cols) = (5, 140);
    for form in FORMS {
        let mut palettes = Palettes::random(form, rows, cols, 2, &mut numbers);
        // Multiples of the step, which is a fifteenth.
        let weight = |i: usize| f16::from_f32(if i.is_multiple_of(16) { 273.0 } else { (i % 241) as f32 });
        let entries: Vec<f16> = (0..palettes.palettes.len()).map(weight).collect();
        for (i, weight) in palettes.weights.iter_mut().enumerate() {
            let bit = |bit: usize| usize::from(palettes.indices[bit / 8] >> (bit % 8) & 1);
            let index: usize = (0..form.bits.bits()).map(|at| bit(i * form.bits.bits() + at) << at).sum();
            *weight = entries[i / cols / 2 * form.bits.entries() + index];
        }
        palettes.palettes = entries;
        let matrix = Rounded::of(palettes);
        for (kernels, columns) in every_isa().flat_map(|kernels| [1, 3, 17].map(|s| (kernels, s))) {
            for k in 0..cols {
                let mut data = vec![0.0; cols * columns];
                data[k * columns..][..columns].fill(0.5);
                let mut y = vec![0.0; rows * columns];
                let x = Columns::dense(&data, columns);
                run(kernels, &pools()[0], matrix.matrix(), x, &mut y, Blend::SET);
                for (i, &y) in y.iter().enumerate() {
                    let expected = matrix.palettes.weights[i / columns * cols + k].to_f32() / 2.0;
                    let what = format!("{form}.{} column {k} of {columns}", kernels.isa());
                    assert_near(y, expected.into(), 1e-4, &what);
                }
            }
        }
    }
}

#[test]
fn what_is_not_finite_stays_so_and_nothing_else_becomes_it() {
    let mut numbers = Numbers::seeded(20);
    for form in FORMS {
        let matrix = Rounded::of(Palettes::random(form, 18, 256, 3, &mut numbers));
        for (kernels, columns) in every_isa().flat_map(|kernels| [1, 4, 19].map(|s| (kernels, s))) {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1e-38, f32::MAX / 1e6] {
                let mut data = vec![0.0; 256 * columns];
                data[200 * columns + columns / 2] = bad;
                let mut y = vec![0.0; 18 * columns];
                run(
                    kernels,
                    &pools()[0],
                    matrix.matrix(),
                    Columns::dense(&data, columns),
                    &mut y,
                    Blend::SET,
                );
                for (i, y) in y.iter().enumerate() {
                    let finite = bad.is_finite() || i % columns != columns / 2;
                    assert_eq!(y.is_finite(), finite, "{form}.{} {bad} {columns}: {y}", kernels.isa());
                }
            }
        }
    }
}

#[test]
fn palettes_that_are_not_finite_are_not_rounded() {
    for bad in [f16::NAN, f16::INFINITY, f16::NEG_INFINITY] {
        let mut palettes = vec![f16::ONE; 32];
        assert!(RoundedPalettes::of(&palettes, IndexBits::Four).is_some());
        palettes[17] = bad;
        assert!(RoundedPalettes::of(&palettes, IndexBits::Four).is_none());
    }
}

#[test]
fn a_palette_of_zeros_gives_zero() {
    let rounded = RoundedPalettes::of(&[f16::ZERO; 16], IndexBits::Four).unwrap();
    assert!(rounded.entries.iter().all(|&entry| entry == 0) && rounded.steps[0].is_finite());
}
