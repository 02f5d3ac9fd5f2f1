//! Numbers with bounds, checked as they are parsed so that a usage error names the flag.

use clap::builder::RangedU64ValueParser;

/// Longest context; positions are exact in f32 far beyond it.
const MOST_CONTEXT: u64 = 1 << 20;

/// A context length.
pub(super) fn context() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MOST_CONTEXT)
}

/// Tokens in one pass.
pub(super) fn pass_tokens() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1024)
}

/// A count of at least one.
pub(super) fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// A number that is not negative.
pub(super) fn not_negative(text: &str) -> Result<f32, String> {
    within(text, "at least 0", |number| number >= 0.0)
}

/// A number above zero.
pub(super) fn positive(text: &str) -> Result<f32, String> {
    within(text, "above 0", |number| number > 0.0)
}

/// A probability.
pub(super) fn probability(text: &str) -> Result<f32, String> {
    within(text, "between 0 and 1", |number| (0.0..=1.0).contains(&number))
}

/// A probability that leaves something to choose from.
pub(super) fn positive_probability(text: &str) -> Result<f32, String> {
    within(text, "above 0 and at most 1", |number| number > 0.0 && number <= 1.0)
}

/// Any number but the infinite ones.
pub(super) fn finite(text: &str) -> Result<f32, String> {
    within(text, "finite", |_| true)
}

fn within(text: &str, bounds: &str, allowed: impl Fn(f32) -> bool) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() && allowed(number) { Ok(number) } else { Err(format!("must be {bounds}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_refused_with_the_bounds() {
        assert_eq!(not_negative("0"), Ok(0.0));
        assert_eq!(not_negative("-1"), Err("must be at least 0".into()));
        assert_eq!(positive("0"), Err("must be above 0".into()));
        assert_eq!(probability("1.5"), Err("must be between 0 and 1".into()));
        assert_eq!(positive_probability("0"), Err("must be above 0 and at most 1".into()));
        assert_eq!(finite("inf"), Err("must be finite".into()));
        assert_eq!(finite("NaN"), Err("must be finite".into()));
        assert_eq!(finite("warm"), Err("not a number".into()));
    }
}
