//! Arithmetic element by element, with the broadcasts that a `(C, S)` layout has.

use super::Kernels;
use crate::isa::{Kernel, LANES, Simd};

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// The larger; `b` where either is NaN.
    Max,
    /// The smaller; `b` where either is NaN.
    Min,
}

/// One side of an operation whose output is `(C, S)`.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// `(C, S)`
    Tensor(&'a [f32]),
    /// What the output holds before, `(C, S)`.
    Output,
    /// `(C, 1)`: one number per channel.
    PerChannel(&'a [f32]),
    /// `(1, S)`: one number per column.
    PerColumn(&'a [f32]),
    /// One number.
    Scalar(f32),
}

impl<'a> Operand<'a> {
    fn check(self, len: usize, columns: usize) {
        match self {
            Self::Tensor(x) => assert_eq!(x.len(), len, "binary: a tensor operand is (C, S)"),
            Self::PerChannel(x) => {
                assert_eq!(x.len() * columns, len, "binary: a per-channel operand is (C, 1)")
            }
            Self::PerColumn(x) => assert_eq!(x.len(), columns, "binary: a per-column operand is (1, S)"),
            Self::Output | Self::Scalar(_) => (),
        }
    }

    fn is_by_row(self) -> bool {
        matches!(self, Self::PerChannel(_) | Self::PerColumn(_))
    }

    /// The same operand when a channel has one column, so that channels can be taken sixteen at a time.
    fn flattened(self) -> Self {
        match self {
            Self::PerChannel(x) => Self::Tensor(x),
            Self::PerColumn(x) => Self::Scalar(x[0]),
            same => same,
        }
    }

    fn row(self, row: usize, columns: usize) -> Source<'a> {
        match self {
            Self::Tensor(x) => Source::Slice(&x[row * columns..][..columns]),
            Self::Output => Source::Output,
            Self::PerChannel(x) => Source::Splat(x[row]),
            Self::PerColumn(x) => Source::Slice(x),
            Self::Scalar(x) => Source::Splat(x),
        }
    }
}

impl Kernels {
    /// `a` op `b` into `out (C, S)`, S = `columns`. Each result is correctly rounded.
    ///
    /// # Panics
    /// If an operand's length does not fit.
    pub fn binary(&self, op: Binary, a: Operand<'_>, b: Operand<'_>, columns: usize, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        assert!(out.len().is_multiple_of(columns), "binary: out is (C, S)");
        a.check(out.len(), columns);
        b.check(out.len(), columns);
        let (a, b) = if columns == 1 { (a.flattened(), b.flattened()) } else { (a, b) };
        let columns = if a.is_by_row() || b.is_by_row() { columns } else { out.len() };
        match op {
            Binary::Add => self.isa.run(Rows { op: Add, a, b, columns, out }),
            Binary::Sub => self.isa.run(Rows { op: Sub, a, b, columns, out }),
            Binary::Mul => self.isa.run(Rows { op: Mul, a, b, columns, out }),
            Binary::Div => self.isa.run(Rows { op: Div, a, b, columns, out }),
            Binary::Max => self.isa.run(Rows { op: Max, a, b, columns, out }),
            Binary::Min => self.isa.run(Rows { op: Min, a, b, columns, out }),
        }
    }
}

/// [`Binary`] as types, so that each has a loop of its own.
trait Operation: Copy {
    fn apply<S: Simd>(self, simd: S, a: S::F32, b: S::F32) -> S::F32;
}

macro_rules! operation {
    ($name:ident, $method:ident) => {
        #[derive(Clone, Copy)]
        struct $name;

        impl Operation for $name {
            #[inline(always)]
            fn apply<S: Simd>(self, simd: S, a: S::F32, b: S::F32) -> S::F32 {
                simd.$method(a, b)
            }
        }
    };
}

operation!(Add, add);
operation!(Sub, sub);
operation!(Mul, mul);
operation!(Div, div);
operation!(Max, max);
operation!(Min, min);

/// Where one row of an operand comes from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Slice(&'a [f32]),
    Output,
    Splat(f32),
}

impl Source<'_> {
    /// The elements of `range`, at most sixteen; `out` is what the output holds there.
    #[inline(always)]
    fn read<S: Simd>(self, simd: S, start: usize, out: &[f32]) -> S::F32 {
        match self {
            Self::Slice(x) => simd.load_part(&x[start..start + out.len()]),
            Self::Output => simd.load_part(out),
            Self::Splat(x) => simd.splat(x),
        }
    }
}

struct Rows<'a, O> {
    op: O,
    a: Operand<'a>,
    b: Operand<'a>,
    columns: usize,
    out: &'a mut [f32],
}

impl<O: Operation> Kernel for Rows<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (row, out) in self.out.chunks_exact_mut(self.columns).enumerate() {
            let (a, b) = (self.a.row(row, self.columns), self.b.row(row, self.columns));
            for (block, out) in out.chunks_mut(LANES).enumerate() {
                let start = block * LANES;
                let value = self.op.apply(simd, a.read(simd, start, out), b.read(simd, start, out));
                simd.store_part(value, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Numbers, every_isa};

    type Reference = fn(f32, f32) -> f32;

    const OPERATIONS: [(Binary, Reference); 6] = [
        (Binary::Add, |a, b| a + b),
        (Binary::Sub, |a, b| a - b),
        (Binary::Mul, |a, b| a * b),
        (Binary::Div, |a, b| a / b),
        (Binary::Max, |a, b| if a > b { a } else { b }),
        (Binary::Min, |a, b| if a < b { a } else { b }),
    ];

    /// The element of an operand at channel `c`, column `s`.
    fn at(operand: Operand<'_>, before: &[f32], columns: usize, c: usize, s: usize) -> f32 {
        match operand {
            Operand::Tensor(x) => x[c * columns + s],
            Operand::Output => before[c * columns + s],
            Operand::PerChannel(x) => x[c],
            Operand::PerColumn(x) => x[s],
            Operand::Scalar(x) => x,
        }
    }

    #[test]
    fn every_operation_broadcasts_every_operand_on_either_side() {
        let mut numbers = Numbers::seeded(1);
        for (channels, columns) in [(3, 1), (40, 1), (1, 1), (5, 17), (2, 64)] {
            let (tensor, before) =
                (numbers.f32s(channels * columns, 2.0), numbers.f32s(channels * columns, 2.0));
            let (per_channel, per_column) = (numbers.f32s(channels, 2.0), numbers.f32s(columns, 2.0));
            let operands = [
                Operand::Tensor(&tensor),
                Operand::Output,
                Operand::PerChannel(&per_channel),
                Operand::PerColumn(&per_column),
                Operand::Scalar(0.75),
            ];
            for kernels in every_isa() {
                for (a, b) in operands.iter().flat_map(|&a| operands.iter().map(move |&b| (a, b))) {
                    for (op, reference) in OPERATIONS {
                        let mut out = before.clone();
                        kernels.binary(op, a, b, columns, &mut out);
                        for (i, &out) in out.iter().enumerate() {
                            let (c, s) = (i / columns, i % columns);
                            let expected =
                                reference(at(a, &before, columns, c, s), at(b, &before, columns, c, s));
                            assert_eq!(out, expected, "{} {op:?} {a:?} {b:?} at {c}, {s}", kernels.isa());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_second_operand_wins_a_comparison_with_nan() {
        for kernels in every_isa() {
            for op in [Binary::Max, Binary::Min] {
                let mut out = [0.0; 2];
                kernels.binary(
                    op,
                    Operand::Tensor(&[f32::NAN, 1.0]),
                    Operand::Tensor(&[2.0, f32::NAN]),
                    1,
                    &mut out,
                );
                assert_eq!(out[0], 2.0, "{} {op:?}", kernels.isa());
                assert!(out[1].is_nan(), "{} {op:?}", kernels.isa());
            }
        }
    }
}
