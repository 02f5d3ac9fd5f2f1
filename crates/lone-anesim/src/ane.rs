//! The engine's [`Numerics`]: sums from the [`Mac`], activations from tables, and no NaN anywhere.

use lone_mil::interpret::{Binary, Reduction, Unary, round_to_half};
use lone_mil::{DType, Numerics, Reference};

use crate::Faults;
use crate::grid::nearest;
use crate::mac::Mac;
use crate::table::Table;

/// The logarithm of 0.
const LOG_OF_ZERO: f32 = -45_440.0;
/// The gain of a slice that does not start at the first element of the last axis.
const WIDTH_SLICE_GAIN: f32 = 16.0;

/// Arithmetic with some [`Faults`]. What they do not name is as in [`Reference`].
#[derive(Debug, Clone)]
pub struct Ane {
    faults: Faults,
    mac: Mac,
    sigmoid: Table,
    silu: Table,
    tanh: Table,
}

impl Ane {
    /// The arithmetic with these faults.
    pub fn new(faults: Faults) -> Self {
        Ane {
            faults,
            mac: Mac::new(faults),
            sigmoid: Table::sigmoid(),
            silu: Table::silu(),
            tanh: Table::tanh(),
        }
    }

    /// An operand as an operation sees it: NaN is infinity, and zero has no sign.
    fn seen(&self, value: f32) -> f32 {
        if !self.faults.special_values {
            value
        } else if value.is_nan() {
            f32::INFINITY
        } else {
            value + 0.0
        }
    }

    /// The result of an operation on operands of which none is NaN.
    fn defined(&self, value: f32) -> f32 {
        if self.faults.special_values && value.is_nan() { 0.0 } else { value }
    }

    fn see_all(&self, values: &mut [f32]) {
        if self.faults.special_values {
            values.iter_mut().for_each(|value| *value = self.seen(*value));
        }
    }

    fn define_all(&self, values: &mut [f32]) {
        if self.faults.special_values {
            values.iter_mut().for_each(|value| *value = self.defined(*value));
        }
    }

    fn table(&self, f: Unary) -> Option<&Table> {
        match f {
            Unary::Sigmoid => Some(&self.sigmoid),
            Unary::Silu => Some(&self.silu),
            Unary::Tanh => Some(&self.tanh),
            _ => None,
        }
    }
}

impl Default for Ane {
    fn default() -> Self {
        Ane::new(Faults::default())
    }
}

impl Numerics for Ane {
    fn name(&self) -> &'static str {
        "ane-sim"
    }

    fn store(&self, dtype: DType, values: &mut [f32]) {
        self.see_all(values);
        if dtype == DType::F16 {
            round_to_half(values);
        }
        // Rounding may have made another zero negative.
        self.see_all(values);
    }

    fn unary(&self, f: Unary, x: &[f32], out: &mut [f32]) {
        if let Some(table) = self.table(f).filter(|_| self.faults.tabled_activations) {
            out.iter_mut().zip(x).for_each(|(out, &x)| *out = table.at(self.seen(x)));
            return;
        }
        each_part(x, out, |x, out| {
            self.see_all(x);
            f.map(x, out);
            if f == Unary::Log && self.faults.special_values {
                out.iter_mut().zip(&*x).filter(|&(_, &x)| x == 0.0).for_each(|(out, _)| *out = LOG_OF_ZERO);
            }
            self.define_all(out);
        });
    }

    fn binary(&self, f: Binary, x: &[f32], y: &[f32], out: &mut [f32]) {
        let mut second = y.chunks(PART);
        let mut y_seen = [0.0; PART];
        each_part(x, out, |x, out| {
            let y = second.next().expect("as many parts of y as of x");
            let y_seen = &mut y_seen[..y.len()];
            y_seen.copy_from_slice(y);
            self.see_all(x);
            self.see_all(y_seen);
            f.map(x, y_seen, out);
            self.define_all(out);
        });
    }

    fn dot(&self, x: &[f32], y: &[f32], start: f32) -> f32 {
        self.mac.dot(x, y, start)
    }

    fn reduce(&self, f: Reduction, row: &[f32]) -> f32 {
        let mut row = row.to_vec();
        self.see_all(&mut row);
        if f == Reduction::Sum && self.faults.narrow_reduce_sum {
            let add = |sum: f32, &x: &f32| self.defined(nearest(f64::from(sum) + f64::from(x)));
            return row.iter().fold(0.0, add);
        }
        self.defined(f.of(&row))
    }

    fn softmax(&self, row: &mut [f32]) {
        self.see_all(row);
        let max = Reduction::Max.of(row);
        row.iter_mut().for_each(|x| *x = self.defined(*x - max).exp());
        let sum = Reduction::Sum.of(row);
        row.iter_mut().for_each(|x| *x /= sum);
    }

    fn normalize(&self, row: &mut [f32], epsilon: f32) {
        self.see_all(row);
        Reference.normalize(row, epsilon);
        self.define_all(row);
    }

    fn width_slice(&self, values: &mut [f32]) {
        if self.faults.width_slice_gain {
            for value in values {
                let gained = nearest(f64::from(*value * WIDTH_SLICE_GAIN));
                if gained.is_infinite() {
                    *value = gained;
                }
            }
        }
    }
}

/// Elements that are copied at a time.
const PART: usize = 256;

/// `f` of a copy of each part of `x` that it may change, and the part of `out` that it fills.
fn each_part(x: &[f32], out: &mut [f32], mut f: impl FnMut(&mut [f32], &mut [f32])) {
    let mut copy = [0.0; PART];
    for (x, out) in x.chunks(PART).zip(out.chunks_mut(PART)) {
        let copy = &mut copy[..x.len()];
        copy.copy_from_slice(x);
        f(copy, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFINITY: f32 = f32::INFINITY;

    fn stored(mut values: Vec<f32>) -> Vec<f32> {
        Ane::default().store(DType::F16, &mut values);
        values
    }

    fn unary(f: Unary, x: f32) -> f32 {
        let mut out = [7.0];
        Ane::default().unary(f, &[x], &mut out);
        stored(out.to_vec())[0]
    }

    fn binary(f: Binary, x: f32, y: f32) -> f32 {
        let mut out = [7.0];
        Ane::default().binary(f, &[x], &[y], &mut out);
        stored(out.to_vec())[0]
    }

    #[test]
    fn not_a_number_is_infinity() {
        assert_eq!(stored(vec![f32::NAN, 1.0]), [INFINITY, 1.0]);
        assert_eq!(binary(Binary::Add, f32::NAN, 0.0), INFINITY);
        assert_eq!([Unary::Relu, Unary::Exp].map(|f| unary(f, f32::NAN)), [INFINITY; 2]);
        assert_eq!([Unary::Sigmoid, Unary::Tanh].map(|f| unary(f, f32::NAN)), [1.0; 2]);
        assert_eq!(binary(Binary::Maximum, f32::NAN, 1.0), INFINITY);
        let mut row = [1.0, f32::NAN, 2.0];
        Ane::default().softmax(&mut row);
        assert_eq!(row, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn what_would_not_be_a_number_is_zero() {
        assert_eq!(binary(Binary::Sub, INFINITY, INFINITY), 0.0);
        assert_eq!(binary(Binary::Mul, 0.0, INFINITY), 0.0);
        assert_eq!([Unary::Sqrt, Unary::Rsqrt, Unary::Log].map(|f| unary(f, -1.0)), [0.0; 3]);
    }

    #[test]
    fn the_logarithm_of_zero_is_finite() {
        assert_eq!(unary(Unary::Log, 0.0), -45_440.0);
        assert_eq!(unary(Unary::Log, 1.0), 0.0);
    }

    #[test]
    fn zero_has_no_sign() {
        let values = stored(vec![-0.0, -1e-9]);
        assert!(values.iter().all(|value| value.to_bits() == 0), "{values:?}");
        assert_eq!([Unary::Inverse, Unary::Rsqrt].map(|f| unary(f, -0.0)), [INFINITY; 2]);
    }

    #[test]
    fn subnormal_values_outlive_elementwise_operations() {
        let least = 1.0 / 16_777_216.0;
        assert_eq!([binary(Binary::Add, least, 0.0), binary(Binary::Mul, least, 1.0)], [least; 2]);
    }

    #[test]
    fn exponentials_and_squares_overflow_where_fp16_does() {
        assert!(unary(Unary::Exp, 11.085_937).is_finite());
        assert_eq!(unary(Unary::Exp, 11.093_75), INFINITY);
        assert_eq!([255.0, 256.0].map(|x| unary(Unary::Square, x)), [65_024.0, INFINITY]);
        assert_eq!(binary(Binary::Mul, 256.0, 256.0), INFINITY);
    }

    #[test]
    fn a_narrow_sum_of_ones_stops_at_2048_and_wide_ones_do_not() {
        let ane = Ane::default();
        let ones = |f: Reduction, n: usize| ane.reduce(f, &vec![1.0; n]);
        assert_eq!(
            [2047, 2048, 2049, 4000].map(|n| ones(Reduction::Sum, n)),
            [2047.0, 2048.0, 2048.0, 2048.0]
        );
        assert_eq!(ones(Reduction::Mean, 4000), 1.0);
        assert_eq!(ane.dot(&[1.0; 4000], &[1.0; 4000], 0.0), 4000.0);
        let wide = Ane::new(Faults { narrow_reduce_sum: false, ..Faults::M1 });
        assert_eq!(wide.reduce(Reduction::Sum, &[1.0; 4000]), 4000.0);
    }

    #[test]
    fn a_slice_off_the_edge_of_the_width_overflows_beyond_4094() {
        let mut values = [4094.0, 4096.0, -4095.0, -4094.0, 0.1];
        Ane::default().width_slice(&mut values);
        assert_eq!(values, [4094.0, INFINITY, -INFINITY, -4094.0, 0.1]);
        let mut large = [4096.0];
        Ane::new(Faults::M5).width_slice(&mut large);
        assert_eq!(large, [4096.0]);
    }

    #[test]
    fn without_faults_numbers_are_those_of_the_reference() {
        let (exact, x) = (Ane::new(Faults::EXACT), [-2.0, -0.0, 0.3, 700.0, f32::NAN]);
        for f in [Unary::Sigmoid, Unary::Silu, Unary::Log, Unary::Tanh, Unary::Exp] {
            let (mut found, mut expected) = ([0.0; 5], [0.0; 5]);
            exact.unary(f, &x, &mut found);
            Reference.unary(f, &x, &mut expected);
            assert_eq!(found.map(f32::to_bits), expected.map(f32::to_bits), "{f:?}");
        }
        let ones = [1.0; 4000];
        assert_eq!(exact.reduce(Reduction::Sum, &ones), Reference.reduce(Reduction::Sum, &ones));
        assert_eq!(exact.dot(&ones, &ones, 40_000.0), 44_000.0);
    }
}
