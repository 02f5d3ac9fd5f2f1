//! Which keys each query of a pass may see: the additive mask, read once and kept as ranges, so that hidden
//! keys cost nothing.

use std::ops::Range;

use half::f16;

/// A mask value below this hides its key.
const HIDDEN_BELOW: f32 = -10_000.0;

/// For each query, the ascending, disjoint ranges of keys that its mask row leaves visible.
///
/// Keys are counted as the mask's columns: those of the past, then the pass's own. A query whose row hides
/// every key sees them all, by their mask values, which is what the softmax of such a row means.
#[derive(Clone, Debug, Default)]
pub struct VisibleKeys {
    ranges: Vec<Range<usize>>,
    /// For each query, where its ranges end in `ranges`.
    ends: Vec<usize>,
    keys: usize,
    weighted: bool,
}

impl VisibleKeys {
    /// With room for `queries` rows of a few ranges each, so that [`VisibleKeys::read`] need not allocate.
    pub fn with_capacity(queries: usize) -> Self {
        Self {
            ranges: Vec::with_capacity(4 * queries),
            ends: Vec::with_capacity(queries),
            keys: 0,
            weighted: false,
        }
    }

    /// Reads `mask (S, keys)`, replacing what was read before.
    ///
    /// # Panics
    /// If `mask` is not a whole number of rows.
    pub fn read(&mut self, mask: &[f16], keys: usize) {
        assert!(
            keys > 0 && mask.len().is_multiple_of(keys),
            "VisibleKeys: {} mask values in rows of {keys}",
            mask.len()
        );
        self.ranges.clear();
        self.ends.clear();
        self.keys = keys;
        self.weighted = false;
        for row in mask.chunks_exact(keys) {
            self.read_row(row);
        }
    }

    fn read_row(&mut self, row: &[f16]) {
        let first = self.ranges.len();
        let mut start = 0;
        for same in row.chunk_by(|a, b| a.to_bits() == b.to_bits()) {
            let range = start..start + same.len();
            start = range.end;
            let value = same[0].to_f32();
            if value < HIDDEN_BELOW {
                continue;
            }
            self.weighted |= value != 0.0;
            match self.ranges[first..].last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.ranges.push(range),
            }
        }
        if self.ranges.len() == first {
            self.weighted = true;
            self.ranges.push(0..row.len());
        }
        self.ends.push(self.ranges.len());
    }

    /// S, how many queries the mask has.
    pub fn queries(&self) -> usize {
        self.ends.len()
    }

    /// How many keys each row speaks of, hidden ones included.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The ranges that `query` sees.
    pub fn ranges(&self, query: usize) -> &[Range<usize>] {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        &self.ranges[start..self.ends[query]]
    }

    /// The ranges of keys that any of `queries` sees, ascending, with a gap between each and the next.
    pub(super) fn runs(&self, queries: Range<usize>) -> Runs<'_> {
        Runs { visible: self, queries, at: 0 }
    }

    /// The ranges of `query` that end after `key`.
    pub(super) fn ranges_after(&self, query: usize, key: usize) -> &[Range<usize>] {
        let ranges = self.ranges(query);
        &ranges[ranges.partition_point(|range| range.end <= key)..]
    }

    /// Whether any visible key has a mask value other than zero, so that the mask must be added to the
    /// scores.
    pub fn weighted(&self) -> bool {
        self.weighted
    }
}

/// What several queries see together; made by [`VisibleKeys::runs`].
pub(super) struct Runs<'a> {
    visible: &'a VisibleKeys,
    queries: Range<usize>,
    at: usize,
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let next_of = |query, key| self.visible.ranges_after(query, key).first();
        let start = self
            .queries
            .clone()
            .filter_map(|query| next_of(query, self.at))
            .map(|range| range.start)
            .min()?;
        let mut end = start;
        loop {
            let touching =
                |query| self.visible.ranges_after(query, end).first().filter(|range| range.start <= end);
            match self.queries.clone().filter_map(touching).map(|range| range.end).max() {
                Some(further) => end = further,
                None => break,
            }
        }
        self.at = end;
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &[&[f32]]) -> VisibleKeys {
        let mask: Vec<f16> = rows.concat().into_iter().map(f16::from_f32).collect();
        let mut visible = VisibleKeys::default();
        visible.read(&mask, rows[0].len());
        visible
    }

    fn spelled(ranges: &[Range<usize>]) -> Vec<(usize, usize)> {
        ranges.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn hidden_keys_split_a_row_into_ranges() {
        let visible =
            read(&[&[-40000.0, 0.0, 0.0, -40000.0, 0.0], &[0.0, 0.0, -65504.0, f32::NEG_INFINITY, 0.0]]);
        assert_eq!(spelled(visible.ranges(0)), [(1, 3), (4, 5)]);
        assert_eq!(spelled(visible.ranges(1)), [(0, 2), (4, 5)]);
        assert!(!visible.weighted());
        assert_eq!((visible.queries(), visible.keys()), (2, 5));
    }

    #[test]
    fn runs_join_what_several_queries_see() {
        let hidden = -40000.0;
        let visible = read(&[
            &[0.0, hidden, hidden, hidden, 0.0, 0.0, hidden, hidden],
            &[hidden, 0.0, hidden, hidden, hidden, 0.0, 0.0, hidden],
            &[hidden, hidden, hidden, hidden, 0.0, hidden, hidden, 0.0],
        ]);
        let runs = |queries| spelled(&visible.runs(queries).collect::<Vec<_>>());
        assert_eq!(runs(0..1), [(0, 1), (4, 6)]);
        assert_eq!(runs(0..2), [(0, 2), (4, 7)]);
        assert_eq!(runs(0..3), [(0, 2), (4, 8)]);
        assert_eq!(runs(1..2), [(1, 2), (5, 7)]);
    }

    #[test]
    fn a_finite_bias_is_visible_and_has_weight() {
        let visible = read(&[&[0.0, -1.5, -40000.0]]);
        assert_eq!(spelled(visible.ranges(0)), [(0, 2)]);
        assert!(visible.weighted());
    }

    #[test]
    fn a_row_that_hides_everything_sees_everything() {
        let visible = read(&[&[-40000.0, -40000.0], &[0.0, -40000.0]]);
        assert_eq!(spelled(visible.ranges(0)), [(0, 2)]);
        assert_eq!(spelled(visible.ranges(1)), [(0, 1)]);
        assert!(visible.weighted());
    }
}
