//! Numbers with bounds, checked as they are parsed so that a usage error names the flag.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Longest context; positions are exact in f32 far beyond it.
pub(crate) const MOST_CONTEXT: usize = 1 << 20;

/// Longest wait: a year.
const MOST_SECONDS: usize = 366 * 24 * 3600;

/// Most threads: more than any machine has cores for, and few enough to start everywhere.
const MOST_THREADS: usize = 256;

/// Most requests answered together: each has a cache of its own from the beginning.
const MOST_PARALLEL: usize = 256;

/// Most connections: more than a system has ports for.
const MOST_CONNECTIONS: usize = 1 << 17;

/// A context length.
pub(super) fn context(text: &str) -> Result<usize, String> {
    whole(text, 1..=MOST_CONTEXT)
}

/// Tokens in one pass.
pub(super) fn pass_tokens(text: &str) -> Result<usize, String> {
    whole(text, 1..=1024)
}

/// Threads that compute.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    whole(text, 1..=MOST_THREADS)
}

/// A count of at least one.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    whole(text, 1..=usize::MAX)
}

/// Seconds to wait.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    whole(text, 1..=MOST_SECONDS).map(|seconds| seconds as u64)
}

/// Requests answered together.
pub(super) fn parallel(text: &str) -> Result<usize, String> {
    whole(text, 1..=MOST_PARALLEL)
}

/// Connections.
pub(super) fn connections(text: &str) -> Result<usize, String> {
    whole(text, 1..=MOST_CONNECTIONS)
}

/// A count, or none.
pub(super) fn count(text: &str) -> Result<usize, String> {
    whole(text, 0..=usize::MAX)
}

/// A size: bytes, or a number with a unit in any case.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("kb", 1000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("b", 1),
    ];
    let text = text.to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let (number, scale) = unit.unwrap_or((&text, 1));
    let number: f64 =
        number.trim().parse().map_err(|_| "must be a size, such as 512MB or 2GiB".to_owned())?;
    let bytes = number * scale as f64;
    if (0.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err("must be between 0 and 1e18 bytes".to_owned())
    }
}

/// A token id, perhaps among spaces.
pub(super) fn token_id(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "must be token ids between commas, such as 1,5,7".to_owned())
}

/// A seed.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let usual = "must be a whole number between 0 and 18446744073709551615";
    text.parse().map_err(|_| usual.to_owned())
}

fn whole(text: &str, bounds: RangeInclusive<usize>) -> Result<usize, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("not a whole number".to_owned());
    }
    let (least, most) = (bounds.start(), bounds.end());
    text.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(|| match *most {
        // Digits alone are no number only where there are too many of them.
        usize::MAX if text == digits && text.parse::<usize>().is_err() => format!("must be at most {most}"),
        usize::MAX => format!("must be at least {least}"),
        most => format!("must be between {least} and {most}"),
    })
}

/// A number that is not negative.
pub(super) fn not_negative(text: &str) -> Result<f32, String> {
    within(text, "at least 0", |number| number >= 0.0)
}

/// A number above zero.
pub(super) fn positive(text: &str) -> Result<f32, String> {
    within(text, "above 0", |number| number > 0.0)
}

/// What the odds of a token are divided by.
pub(super) fn penalty_factor(text: &str) -> Result<f32, String> {
    within(text, "between 0.01 and 100", |number| (0.01..=100.0).contains(&number))
}

/// What is subtracted from a logit.
pub(super) fn penalty(text: &str) -> Result<f32, String> {
    within(text, "between -1000 and 1000", |number| (-1000.0..=1000.0).contains(&number))
}

/// A probability.
pub(super) fn probability(text: &str) -> Result<f32, String> {
    within(text, "between 0 and 1", |number| (0.0..=1.0).contains(&number))
}

/// A probability that leaves something to choose from.
pub(super) fn positive_probability(text: &str) -> Result<f32, String> {
    within(text, "above 0 and at most 1", |number| number > 0.0 && number <= 1.0)
}

/// A cosine.
pub(super) fn cosine(text: &str) -> Result<f64, String> {
    within(text, "between -1 and 1", |number| (-1.0..=1.0).contains(&number))
}

/// A share that leaves something.
pub(super) fn share(text: &str) -> Result<f64, String> {
    within(text, "above 0 and at most 1", |number| number > 0.0 && number <= 1.0)
}

fn within<T: FromStr + Into<f64> + Copy>(
    text: &str,
    bounds: &str,
    allowed: impl Fn(T) -> bool,
) -> Result<T, String> {
    let number: T = text.parse().map_err(|_| "not a number".to_owned())?;
    match number {
        number if !allowed(number) => Err(format!("must be {bounds}")),
        number if !number.into().is_finite() => Err("must be finite".to_owned()),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_refused_with_the_bounds() {
        assert_eq!(not_negative("0"), Ok(0.0));
        assert_eq!(not_negative("-1"), Err("must be at least 0".into()));
        assert_eq!(not_negative("inf"), Err("must be finite".into()));
        assert_eq!(penalty_factor("0"), Err("must be between 0.01 and 100".into()));
        assert_eq!(penalty("-3e38"), Err("must be between -1000 and 1000".into()));
        assert_eq!(probability("1.5"), Err("must be between 0 and 1".into()));
        assert_eq!(positive_probability("0"), Err("must be above 0 and at most 1".into()));
        assert_eq!(cosine("0.999"), Ok(0.999));
        assert_eq!(cosine("NaN"), Err("must be between -1 and 1".into()));
        assert_eq!(penalty("inf"), Err("must be between -1000 and 1000".into()));
        assert_eq!(penalty("NaN"), Err("must be between -1000 and 1000".into()));
        assert_eq!(penalty("warm"), Err("not a number".into()));
    }

    #[test]
    fn sizes_have_units_of_a_thousand_or_of_1024() {
        for (text, expected) in [
            ("512", 512),
            ("2kB", 2000),
            ("1.5MB", 1_500_000),
            ("2 GiB", 2 << 30),
            ("7B", 7),
            ("1KB", 1000),
            ("512mb", 512_000_000),
            ("1TB", 1_000_000_000_000),
            ("1tib", 1 << 40),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MB", "-1MB", "much", "NaN", "1e30GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spaces_around_a_token_id_do_not_count() {
        assert_eq!(token_id(" 15 "), Ok(15));
        for text in ["", "-1", "1 5", "4294967296"] {
            assert!(token_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_outside_their_bounds_are_refused_with_the_bounds() {
        assert_eq!(threads("256"), Ok(256));
        for text in ["0", "-1", "257", "100000", "99999999999999999999999"] {
            assert_eq!(threads(text), Err("must be between 1 and 256".into()), "{text}");
        }
        assert_eq!(at_least_one("0"), Err("must be at least 1".into()));
        assert_eq!(count("-1"), Err("must be at least 0".into()));
        assert_eq!(count("99999999999999999999999"), Err(format!("must be at most {}", usize::MAX)));
        for text in ["", "-", "1.5", "many"] {
            assert_eq!(context(text), Err("not a whole number".into()), "{text}");
        }
    }
}
