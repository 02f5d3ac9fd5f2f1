//! The measurements for people.

use std::fmt::Display;

use super::report::{Report, Row};
use super::statistics::Spread;
use crate::failure::Failure;
use crate::quantity::{Bytes, Seconds, counted};
use crate::ui::Ui;

/// Prints all of `report`.
///
/// # Errors
/// When nobody reads any more.
pub(super) fn print(report: &Report, ui: &Ui) -> Result<(), Failure> {
    let machine = &report.machine;
    let cpu = machine.cpu.as_deref().unwrap_or("unknown processor");
    ui.line(format_args!("{cpu}, {}, {}", counted(machine.cores, "core"), machine.instruction_set))?;
    for limits in &machine.limits {
        let threads = counted(limits.threads, "thread");
        let [bytes, flops] =
            [limits.bytes_per_second, limits.flops_per_second].map(|limit| spread(limit.map(|n| n / 1e9)));
        line(ui, &format!("memory, {threads}, {} pages", machine.pages), format_args!("{bytes} GB/s"))?;
        line(ui, &format!("arithmetic, {threads}"), format_args!("{flops} GFLOP/s"))?;
    }
    ui.line(format_args!("median (min–max) of {}", counted(report.repeat, "turn")))?;
    report.rows.iter().try_for_each(|row| print_row(row, report.decoded_tokens, ui))
}

fn print_row(row: &Row, decoded: usize, ui: &Ui) -> Result<(), Failure> {
    let threads = row.threads.map(|threads| format!(", {}", counted(threads, "thread"))).unwrap_or_default();
    ui.line("")?;
    ui.heading(format_args!("{} ({}{threads})", row.bundle, row.engine()))?;
    line(ui, "load", Seconds(row.load_seconds))?;
    if let Some(bytes) = row.private_bytes {
        let caches = Bytes(row.cache_bytes);
        line(ui, "private memory", format_args!("{}, {caches} of it caches", Bytes(bytes)))?;
    }
    if let Some(bytes) = row.weight_bytes {
        line(ui, "weights read a token", Bytes(bytes))?;
    }
    for point in &row.prefill.by_length {
        let what = format!("prefill {}", point.prompt_tokens);
        let rate = spread(point.tokens_per_second);
        line(ui, &what, format_args!("{rate} tok/s{}", part(point.arithmetic_fraction, "arithmetic")))?;
    }
    for point in &row.decode.by_context {
        let what = format!("decode {decoded} after {}", point.prompt_tokens);
        let rate = spread(point.tokens_per_second);
        let energy = point.energy.as_ref().map(|energy| format!(", {}", energy.line()));
        let (part, energy) = (part(point.bandwidth_fraction, "bandwidth"), energy.unwrap_or_default());
        line(ui, &what, format_args!("{rate} tok/s{part}{energy}"))?;
    }
    if let Some(verify) = &row.verify {
        let (passes, seconds) = (verify.decode_passes, Seconds(verify.seconds.median));
        let what = format!("verify {}", verify.tokens);
        let part = part(verify.arithmetic_fraction, "arithmetic");
        line(ui, &what, format_args!("{seconds}, {passes:.2} decode passes{part}"))?;
    }
    for kind in &row.profile {
        let (share, seconds) = (100.0 * kind.share, 1e3 * kind.seconds);
        let bytes = Bytes(kind.weight_bytes as u64);
        let steps = counted(kind.steps, "step");
        line(
            ui,
            &format!("  {}", kind.kind),
            format_args!("{seconds:.3} ms, {share:.1} %, {steps}, {bytes}"),
        )?;
    }
    Ok(())
}

fn line(ui: &Ui, what: &str, value: impl Display) -> Result<(), Failure> {
    ui.line(format_args!("  {what:<32}{value}"))
}

/// As `, 90 % of bandwidth`, where it is known.
fn part(fraction: Option<f64>, limit: &str) -> String {
    fraction.map(|fraction| format!(", {:.0} % of {limit}", 100.0 * fraction)).unwrap_or_default()
}

fn spread(Spread { median, min, max }: Spread) -> String {
    format!("{median:.1} ({min:.1}–{max:.1})")
}
