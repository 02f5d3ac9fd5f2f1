//! Progress over bytes, or over things: a bar with rate and ETA on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::Ui;
use crate::quantity::Bytes;

/// Counts what is done and shows it. Dropping it takes the bar away.
pub(crate) struct Progress<'ui> {
    ui: &'ui Ui,
    bar: ProgressBar,
    lines: Lines,
}

/// When a log is due another line: at each further tenth, but not more often than people read.
#[derive(Debug)]
struct Lines {
    what: String,
    unit: Unit,
    total: u64,
    done: u64,
    tenths: u64,
    last: Instant,
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    Bytes,
    /// Whatever the plural says.
    Things(&'static str),
}

const LEAST_BETWEEN_LINES: Duration = Duration::from_secs(1);

impl<'ui> Progress<'ui> {
    pub(super) fn new(ui: &'ui Ui, what: String, unit: Unit, total: u64) -> Self {
        let style = ProgressStyle::with_template(&unit.template()).expect("the template is valid");
        let bar = ui.bars.add(ProgressBar::new(total).with_style(style).with_prefix(what.clone()));
        let lines = Lines { what, unit, total, done: 0, tenths: 0, last: Instant::now() };
        Progress { ui, bar, lines }
    }

    /// Another `amount` is done.
    pub(crate) fn advance(&mut self, amount: u64) {
        self.bar.inc(amount);
        let line = self.lines.advance(amount, Instant::now());
        if let Some(line) = line.filter(|_| !self.ui.stderr_is_terminal) {
            self.ui.note(line);
        }
    }

    /// `bytes` were done before this run and do not count towards the rate.
    pub(crate) fn resume_at(&mut self, bytes: u64) {
        self.bar.inc(bytes);
        self.bar.reset_eta();
        self.lines.done += bytes;
    }

    /// `bytes` that were done have to be done again.
    pub(crate) fn set_back(&mut self, bytes: u64) {
        self.bar.dec(bytes);
        self.lines.done = self.lines.done.saturating_sub(bytes);
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.ui.bars.remove(&self.bar);
    }
}

impl Unit {
    fn template(self) -> String {
        match self {
            Unit::Bytes => "{prefix} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left".into(),
            Unit::Things(plural) => format!("{{prefix}} {{wide_bar}} {{pos}} of {{len}} {plural}, {{eta}} left"),
        }
    }

    /// So much done of so much.
    fn of(self, done: u64, total: u64) -> String {
        match self {
            Unit::Bytes => format!("{} of {}", Bytes(done), Bytes(total)),
            Unit::Things(plural) => format!("{done} of {total} {plural}"),
        }
    }
}

impl Lines {
    fn advance(&mut self, amount: u64, now: Instant) -> Option<String> {
        self.done += amount;
        let tenths = (u128::from(self.done) * 10 / u128::from(self.total.max(1))) as u64;
        let due = tenths > self.tenths && now.duration_since(self.last) >= LEAST_BETWEEN_LINES;
        if !due || self.done >= self.total {
            return None;
        }
        (self.tenths, self.last) = (tenths, now);
        let Lines { what, unit, total, done, .. } = self;
        Some(format!("{what}: {} %, {}", tenths * 10, unit.of(*done, *total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_at_each_tenth_but_at_most_once_a_second() {
        let start = Instant::now();
        let (what, unit) = ("converting".into(), Unit::Bytes);
        let mut lines = Lines { what, unit, total: 1000, done: 0, tenths: 0, last: start };
        let after = |tenths: u32| start + Duration::from_millis(100) * tenths;
        assert_eq!(lines.advance(50, after(20)), None);
        assert_eq!(lines.advance(60, after(21)).unwrap(), "converting: 10 %, 110 B of 1.00 kB");
        assert_eq!(lines.advance(100, after(22)), None);
        assert_eq!(lines.advance(100, after(40)).unwrap(), "converting: 30 %, 310 B of 1.00 kB");
        assert_eq!(lines.advance(690, after(90)), None);
    }

    #[test]
    fn things_are_counted_by_name() {
        assert_eq!(Unit::Things("questions").of(3, 400), "3 of 400 questions");
    }
}
