//! A line a measurement, for spreadsheets.

use super::report::{Report, Row};
use super::statistics::Spread;

const HEADER: &str = "bundle,backend,threads,measurement,tokens,unit,median,min,max,fraction_of_limit\n";

/// All measurements.
pub(super) fn lines(report: &Report) -> String {
    let mut lines = HEADER.to_owned();
    for limits in &report.machine.limits {
        let threads = limits.threads.to_string();
        let arm = ["", "cpu", threads.as_str()];
        lines += &line(arm, ("bandwidth", ""), "bytes/s", limits.bytes_per_second, None);
        lines += &line(arm, ("arithmetic", ""), "flop/s", limits.flops_per_second, None);
    }
    for row in &report.rows {
        lines += &row_lines(row);
    }
    lines
}

fn row_lines(row: &Row) -> String {
    let threads = row.threads.map(|threads| threads.to_string()).unwrap_or_default();
    let bundle = quoted(&row.bundle);
    let engine = row.engine();
    let arm = [bundle.as_str(), engine.as_str(), threads.as_str()];
    let once = |value| Spread { median: value, min: value, max: value };
    let mut lines = line(arm, ("load", ""), "s", once(row.load_seconds), None);
    if let Some(bytes) = row.private_bytes {
        lines += &line(arm, ("private memory", ""), "bytes", once(bytes as f64), None);
    }
    for point in &row.prefill.by_length {
        let (tokens, fraction) = (point.prompt_tokens.to_string(), point.arithmetic_fraction);
        lines += &line(arm, ("prefill", &tokens), "tokens/s", point.tokens_per_second, fraction);
    }
    for point in &row.decode.by_context {
        let (tokens, fraction) = (point.prompt_tokens.to_string(), point.bandwidth_fraction);
        lines += &line(arm, ("decode", &tokens), "tokens/s", point.tokens_per_second, fraction);
    }
    if let Some(verify) = &row.verify {
        let (tokens, fraction) = (verify.tokens.to_string(), verify.arithmetic_fraction);
        lines += &line(arm, ("verify", &tokens), "s", verify.seconds, fraction);
    }
    for kind in &row.profile {
        lines += &line(arm, (kind.kind, ""), "s", once(kind.seconds), None);
    }
    lines
}

fn line(
    arm: [&str; 3],
    (what, tokens): (&str, &str),
    unit: &str,
    spread: Spread,
    part: Option<f64>,
) -> String {
    let Spread { median, min, max } = spread;
    let part = part.map(|part| part.to_string()).unwrap_or_default();
    format!("{},{what},{tokens},{unit},{median},{min},{max},{part}\n", arm.join(","))
}

/// A field in quotes if it needs them.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_one_field() {
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        assert_eq!(quoted("bundles/b"), "bundles/b");
    }
}
