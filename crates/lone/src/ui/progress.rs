//! Progress over bytes: a bar with rate and ETA on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::Ui;
use crate::quantity::Bytes;

/// Counts bytes and shows how many are done. Dropping it takes the bar away.
pub(crate) struct Progress<'ui> {
    ui: &'ui Ui,
    bar: ProgressBar,
    lines: Lines,
}

/// When a log is due another line: at each further tenth, but not more often than people read.
#[derive(Debug)]
struct Lines {
    what: String,
    total: u64,
    done: u64,
    tenths: u64,
    last: Instant,
}

const LEAST_BETWEEN_LINES: Duration = Duration::from_secs(1);

impl<'ui> Progress<'ui> {
    pub(super) fn new(ui: &'ui Ui, what: String, total: u64) -> Self {
        let style = ProgressStyle::with_template(
            "{prefix} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left",
        )
        .expect("the template is valid");
        let bar = ui.bars.add(ProgressBar::new(total).with_style(style).with_prefix(what.clone()));
        let lines = Lines { what, total, done: 0, tenths: 0, last: Instant::now() };
        Progress { ui, bar, lines }
    }

    /// Another `bytes` are done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.bar.inc(bytes);
        let line = self.lines.advance(bytes, Instant::now());
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

impl Lines {
    fn advance(&mut self, bytes: u64, now: Instant) -> Option<String> {
        self.done += bytes;
        let tenths = (u128::from(self.done) * 10 / u128::from(self.total.max(1))) as u64;
        let due = tenths > self.tenths && now.duration_since(self.last) >= LEAST_BETWEEN_LINES;
        if !due || self.done >= self.total {
            return None;
        }
        (self.tenths, self.last) = (tenths, now);
        let Lines { what, total, done, .. } = self;
        Some(format!("{what}: {} %, {} of {}", tenths * 10, Bytes(*done), Bytes(*total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_at_each_tenth_but_at_most_once_a_second() {
        let start = Instant::now();
        let mut lines = Lines { what: "converting".into(), total: 1000, done: 0, tenths: 0, last: start };
        let after = |tenths: u32| start + Duration::from_millis(100) * tenths;
        assert_eq!(lines.advance(50, after(20)), None);
        assert_eq!(lines.advance(60, after(21)).unwrap(), "converting: 10 %, 110 B of 1.00 kB");
        assert_eq!(lines.advance(100, after(22)), None);
        assert_eq!(lines.advance(100, after(40)).unwrap(), "converting: 30 %, 310 B of 1.00 kB");
        assert_eq!(lines.advance(690, after(90)), None);
    }
}
