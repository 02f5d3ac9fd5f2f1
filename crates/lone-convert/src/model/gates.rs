//! The two gates, written out: Core ML's fused ones are approximations on the Neural Engine.

use lone_mil::{FunctionBuilder, ValueId};

use super::Built;
use crate::precision::Precision;

/// x / (1 + e^-x).
pub(crate) fn silu(b: &mut FunctionBuilder, x: ValueId, precision: Precision) -> Built {
    if precision == Precision::Naive {
        return b.silu(x);
    }
    let denominator = one_plus_exp_of_minus(b, x)?;
    b.real_div(x, denominator)
}

/// 1 / (1 + e^-x).
pub(crate) fn sigmoid(b: &mut FunctionBuilder, x: ValueId, precision: Precision) -> Built {
    if precision == Precision::Naive {
        return b.sigmoid(x);
    }
    let denominator = one_plus_exp_of_minus(b, x)?;
    let one = b.scalar_f16(1.0)?;
    b.real_div(one, denominator)
}

/// Infinite where e^-x is: the quotient is then 0, as it should be.
fn one_plus_exp_of_minus(b: &mut FunctionBuilder, x: ValueId) -> Built {
    let minus_one = b.scalar_f16(-1.0)?;
    let negated = b.mul(x, minus_one)?;
    let exp = b.exp(negated)?;
    let one = b.scalar_f16(1.0)?;
    b.add(exp, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trial::Trial;

    #[test]
    fn gates_keep_their_values_to_the_ends_of_fp16() {
        let x = [-60_000.0, -20.0, -2.0, 0.0, 0.5, 11.0, 60_000.0];
        let inputs = [([1, 7, 1, 1], &x[..])];
        let silu = Trial::default().run(&inputs, |b, x| silu(b, x[0], Precision::Rules));
        let sigmoid = Trial::default().run(&inputs, |b, x| sigmoid(b, x[0], Precision::Rules));
        for (i, x) in x.into_iter().enumerate() {
            let share = 1.0 / (1.0 + f64::from(-x).exp());
            assert!((f64::from(sigmoid[i]) - share).abs() <= 5e-4, "sigmoid({x}) = {}", sigmoid[i]);
            let product = f64::from(x) * share;
            assert!(
                (f64::from(silu[i]) - product).abs() <= 1e-3 * product.abs().max(1.0),
                "silu({x}) = {}",
                silu[i]
            );
        }
    }
}
