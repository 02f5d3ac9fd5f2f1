//! How long passes of one shape take: the median of the last few, so that one slow pass says nothing.

use std::time::Duration;

const KEPT: usize = 5;

/// The durations of the last few passes, oldest overwritten first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    last: [Duration; KEPT],
    count: usize,
}

impl Pace {
    pub(crate) fn record(&mut self, duration: Duration) {
        self.last[self.count % KEPT] = duration;
        self.count += 1;
    }

    /// Absent before the first pass.
    pub(crate) fn median(&self) -> Option<Duration> {
        let mut known = self.last;
        let known = &mut known[..self.count.min(KEPT)];
        known.sort_unstable();
        known.get(known.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_pass_among_five_changes_little_and_old_ones_are_forgotten() {
        let mut pace = Pace::default();
        assert_eq!(pace.median(), None);
        let mut after = |millis| {
            pace.record(Duration::from_millis(millis));
            pace.median().unwrap().as_millis()
        };
        assert_eq!([900, 2, 3, 2, 3].map(&mut after), [900, 900, 3, 3, 3]);
        assert_eq!([7, 7, 7].map(&mut after), [3, 3, 7]);
    }
}
