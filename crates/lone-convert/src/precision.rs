//! The precision rules: what is done to reductions so that the Neural Engine's fp16 does not eat them.
//!
//! Its multiplier flushes subnormal products and its partial sums lose what is small beside them, the more so the
//! wider the reduction. Scaling by a power of two is exact; splitting keeps partial sums short. The rules for norms
//! and gates are where those are built, in `model`.

/// Whether graphs follow the rules, or are the naive ones the rules are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Rules,
    Naive,
}

/// Where a linear layer stands, as far as the width of its sums goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Operator,
    FeedForward,
    Head,
}

/// What weights of wide reductions are multiplied by, and their results divided by.
pub(crate) const SCALE: f32 = 16.0;

/// Reductions wider than this are scaled.
const UNSCALED_WIDTH: usize = 1024;

impl Precision {
    /// The factor for the weights of a reduction over `width` values, if they stay within fp16.
    pub(crate) fn scale(self, width: usize) -> f32 {
        if self == Precision::Rules && width > UNSCALED_WIDTH { SCALE } else { 1.0 }
    }

    /// In how many parts, as equal as can be, a reduction over `width` values is summed.
    pub(crate) fn parts(self, place: Place, width: usize) -> usize {
        let widest = match (self, place) {
            (Precision::Naive, _) | (_, Place::Operator) => return 1,
            (Precision::Rules, Place::FeedForward) => 4096,
            (Precision::Rules, Place::Head) => 1024,
        };
        width.div_ceil(widest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_reductions_are_scaled_and_split_by_their_place() {
        let rules = Precision::Rules;
        assert_eq!((rules.scale(1024), rules.scale(1025)), (1.0, 16.0));
        let parts = |place, widths: [usize; 4]| widths.map(|width| rules.parts(place, width));
        assert_eq!(parts(Place::FeedForward, [4096, 4608, 6912, 8192]), [1, 2, 2, 2]);
        assert_eq!(parts(Place::Head, [1024, 1536, 2048, 2049]), [1, 2, 2, 3]);
        assert_eq!(parts(Place::Operator, [64, 1024, 2048, 8192]), [1; 4]);
    }

    #[test]
    fn naive_graphs_do_neither() {
        assert_eq!(Precision::Naive.scale(6656), 1.0);
        assert_eq!(Precision::Naive.parts(Place::FeedForward, 6656), 1);
    }
}
