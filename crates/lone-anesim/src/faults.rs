//! Which departures from exact fp16 arithmetic are modelled, and the engines that have them.

/// The departures, one switch each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Products are rounded to fp16, and each four of them are added before they reach the wide accumulator, by an
    /// adder that drops what lies below the twelfth bit of the larger operand.
    pub tiled_sums: bool,
    /// Products below the normal numbers of fp16, 2^-14, count as 0. Elementwise operations keep such numbers.
    pub flushed_products: bool,
    /// A sum of products, or a part of one, that reaches 2^15 is infinite.
    pub saturating_sums: bool,
    /// Beyond 4096 terms the accumulator is an fp16 that rounds toward zero. An assumption, and the only one here: no
    /// source says what wide projections lose their precision to, and this reproduces how much.
    pub wide_reduction: bool,
    /// `reduce_sum` adds in fp16, one element after the other.
    pub narrow_reduce_sum: bool,
    /// `sigmoid`, `silu` and `tanh` are piecewise linear.
    pub tabled_activations: bool,
    /// There is no NaN and no negative zero: an operand that is NaN is infinite, a result that would be is 0, and the
    /// logarithm of 0 is -45440.
    pub special_values: bool,
    /// A slice that starts behind the first element of the last axis multiplies by 16 on the way: beyond 4094 in
    /// magnitude, values become infinite.
    pub width_slice_gain: bool,
}

impl Faults {
    /// None: every result is exact, then rounded once.
    pub const EXACT: Faults = Faults {
        tiled_sums: false,
        flushed_products: false,
        saturating_sums: false,
        wide_reduction: false,
        narrow_reduce_sum: false,
        tabled_activations: false,
        special_values: false,
        width_slice_gain: false,
    };

    /// The engine of the M1, on which most was measured.
    pub const M1: Faults = Faults {
        tiled_sums: true,
        flushed_products: true,
        saturating_sums: true,
        wide_reduction: true,
        narrow_reduce_sum: true,
        tabled_activations: true,
        special_values: true,
        width_slice_gain: true,
    };

    /// The engine of the M5: it keeps small products, and slices the width without a gain. What was measured on the M1
    /// alone is taken to hold for it too.
    pub const M5: Faults = Faults { flushed_products: false, width_slice_gain: false, ..Faults::M1 };
}

impl Default for Faults {
    fn default() -> Self {
        Faults::M1
    }
}
