//! The measurements as one page that needs nothing else.

use super::chart::{self, Bar, Line, escaped};
use super::report::{LimitsReport, Report, Row};
use crate::quantity::{Bytes, counted};

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:760px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid #8884}
th:first-child,td:first-child{text-align:left}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:currentColor}
.grid{stroke:#8884}.whole{fill:#8882}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1rem}
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}";

/// All of `report`.
pub(super) fn page(report: &Report) -> String {
    let machine = &report.machine;
    let cpu = escaped(machine.cpu.as_deref().unwrap_or("unknown processor"));
    let cores = counted(machine.cores, "core");
    let (isa, turns) = (&machine.instruction_set, counted(report.repeat, "turn"));
    let sections = [
        ("Results", table(report)),
        ("Decoding by context", decoding(report)),
        ("Decoding against memory bandwidth", roofline(report)),
        ("Many tokens at once against arithmetic", arithmetic(report)),
        ("Time of a decode pass by kind of step", steps(report)),
    ];
    let sections: String =
        sections.into_iter().map(|(title, body)| format!("<h2>{title}</h2>\n{body}")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>lone bench</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n\
         <h1>lone bench</h1>\n<p>{cpu}, {cores}, {isa}. Medians of {turns}.</p>\n{sections}</body></html>\n"
    )
}

fn name(row: &Row) -> String {
    match row.threads {
        Some(threads) if row.fast_int16 => {
            format!("{}, {}, fast-int16", row.bundle, counted(threads, "thread"))
        }
        Some(threads) => format!("{}, {}", row.bundle, counted(threads, "thread")),
        None => format!("{}, {}", row.bundle, row.backend),
    }
}

fn table(report: &Report) -> String {
    let mut rows = String::new();
    for row in &report.rows {
        let verify =
            row.verify.as_ref().map_or("–".into(), |verify| format!("{:.2}", verify.decode_passes));
        let part =
            row.decode.bandwidth_fraction.map_or("–".into(), |part| format!("{:.0} %", 100.0 * part));
        let bytes = row.private_bytes.map_or("–".into(), |bytes| Bytes(bytes).to_string());
        rows += &format!(
            "<tr><td>{}</td><td>{:.1}</td><td>{:.1}</td><td>{part}</td><td>{verify}</td><td>{:.2}</td><td>{bytes}</td></tr>\n",
            escaped(&name(row)),
            row.prefill.tokens_per_second,
            row.decode.tokens_per_second,
            row.load_seconds,
        );
    }
    format!(
        "<table><tr><th></th><th>prefill tok/s</th><th>decode tok/s</th><th>of bandwidth</th>\
         <th>verify, in decode passes</th><th>load s</th><th>private memory</th></tr>\n{rows}</table>\n"
    )
}

fn decoding(report: &Report) -> String {
    let line = |row: &Row| Line {
        name: name(row),
        points: (row.decode.by_context.iter())
            .map(|point| [point.prompt_tokens as f64, point.tokens_per_second.median])
            .collect(),
    };
    let lines: Vec<Line> = report.rows.iter().map(line).collect();
    chart::lines("tokens in the context", "tokens per second", &lines)
}

/// Bars as long as the part of the bandwidth that reading weights takes.
fn roofline(report: &Report) -> String {
    let rates = limits(report, |limits| format!("{:.1} GB/s", limits.bytes_per_second.median / 1e9));
    let pages = report.machine.pages;
    let bars = parts(report, |row| vec![("weights read", row.decode.bandwidth_fraction)]);
    format!("<p>Memory was read at {rates} ({pages} pages).</p>\n{bars}")
}

/// The same for arithmetic.
fn arithmetic(report: &Report) -> String {
    let rates = limits(report, |limits| format!("{:.0} GFLOP/s", limits.flops_per_second.median / 1e9));
    let bars = parts(report, |row| {
        let verify = row.verify.as_ref().map(|verify| ("verify pass", verify.arithmetic_fraction));
        [("prefill", row.prefill.arithmetic_fraction)].into_iter().chain(verify).collect()
    });
    format!("<p>Multiplying and adding went at {rates}.</p>\n{bars}")
}

/// What was measured of a limit, for each number of threads.
fn limits(report: &Report, rate: impl Fn(&LimitsReport) -> String) -> String {
    let rates = (report.machine.limits.iter())
        .map(|limits| format!("{} on {}", rate(limits), counted(limits.threads, "thread")));
    rates.collect::<Vec<_>>().join(", ")
}

/// A bar for each row and each part of a limit that it takes.
fn parts(report: &Report, of: impl Fn(&Row) -> Vec<(&'static str, Option<f64>)>) -> String {
    let bars = report.rows.iter().flat_map(|row| {
        let parts = of(row).into_iter().filter_map(|(what, part)| Some((what, 100.0 * part?)));
        parts
            .map(|(what, part)| Bar {
                name: format!("{}, {what}", name(row)),
                parts: vec![(what.into(), part)],
            })
            .collect::<Vec<_>>()
    });
    let bars: Vec<Bar> = bars.collect();
    let most = bars.iter().map(|bar| bar.parts[0].1).fold(100.0, f64::max);
    chart::bars(&bars, most, " %")
}

fn steps(report: &Report) -> String {
    let profiled = report.rows.iter().filter(|row| !row.profile.is_empty());
    let bar = |row: &Row| Bar {
        name: name(row),
        parts: row.profile.iter().map(|kind| (kind.kind.to_owned(), 1e3 * kind.seconds)).collect(),
    };
    let bars: Vec<Bar> = profiled.map(bar).collect();
    let total = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    chart::bars(&bars, bars.iter().map(total).fold(f64::MIN_POSITIVE, f64::max), " ms")
}
