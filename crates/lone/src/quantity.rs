//! Amounts as people read them: bytes, seconds, rates, counts. Decimal units, three digits.

use std::fmt;

/// Bytes, as `1.23 GB`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
        let mut amount = self.0 as f64;
        let mut unit = 0;
        // 999.5 would print as 1000.
        while amount >= 999.5 && unit + 1 < UNITS.len() {
            amount /= 1000.0;
            unit += 1;
        }
        let decimals = match amount {
            _ if unit == 0 => 0,
            ..9.995 => 2,
            ..99.95 => 1,
            _ => 0,
        };
        write!(f, "{amount:.decimals$} {}", UNITS[unit])
    }
}

/// Seconds, as `0.123 s`, `12.3 s` or `3 min 05 s`.
pub(crate) struct Seconds(pub(crate) f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ..0.9995 => write!(f, "{:.3} s", self.0),
            ..9.995 => write!(f, "{:.2} s", self.0),
            ..99.95 => write!(f, "{:.1} s", self.0),
            seconds => {
                let seconds = seconds.round() as u64;
                write!(f, "{} min {:02} s", seconds / 60, seconds % 60)
            }
        }
    }
}

/// How many a second; zero if no time passed, so that it can be printed as JSON.
pub(crate) fn rate(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// A count with its noun: `1 token`, `2 tokens`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_three_digits_and_take_the_next_unit_in_time() {
        let table = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (3_456_000_000, "3.46 GB"),
            (u64::MAX, "18446744 TB"),
        ];
        for (bytes, text) in table {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn seconds_lose_decimals_as_they_grow() {
        let table = [
            (0.0, "0.000 s"),
            (0.9996, "1.00 s"),
            (9.996, "10.0 s"),
            (99.96, "1 min 40 s"),
            (185.0, "3 min 05 s"),
        ];
        for (seconds, text) in table {
            assert_eq!(Seconds(seconds).to_string(), text);
        }
    }

    #[test]
    fn a_rate_over_no_time_is_zero_and_not_infinite() {
        assert_eq!(rate(5.0, 0.0), 0.0);
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!(counted(1, "token"), "1 token");
        assert_eq!(counted(0, "token"), "0 tokens");
    }
}
