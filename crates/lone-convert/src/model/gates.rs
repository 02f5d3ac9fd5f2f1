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
