//! What the Neural Engine can hold, as far as graphs are cut to fit it.

use lone_bundle::Span;

/// The most channels of a tensor.
pub(crate) const MAX_CHANNELS: usize = 65_536;

/// The longest any other axis may be.
pub(crate) const MAX_EXTENT: usize = 16_384;

/// The most weights a package should hold: past about 1 GB programs silently leave the engine.
pub(crate) const MAX_PACKAGE_BYTES: u64 = 900_000_000;

/// The size of a head's slice where nothing else is asked for.
pub(crate) const HEAD_SLICE_BYTES: usize = 128 << 20;

/// `total` in `count` consecutive spans whose sizes differ by at most one, the larger ones first.
pub(crate) fn even_spans(total: usize, count: usize) -> Vec<Span> {
    let mut start = 0;
    let mut next = |i: usize| {
        let size = total / count + usize::from(i < total % count);
        start += size;
        Span { start: start - size, count: size }
    };
    (0..count).map(&mut next).collect()
}

/// How the keys of a pass are cut: `rows` of a cache and the pass's own `tokens`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeySegments {
    /// Rows of the cache, one span an input.
    pub(crate) past: Vec<Span>,
    /// Columns of the mask over rows and tokens, one span an input. Where the keys are cut, the tokens are the last.
    pub(crate) mask: Vec<Span>,
}

impl KeySegments {
    pub(crate) fn new(rows: usize, tokens: usize) -> Self {
        let total = rows + tokens;
        if total <= MAX_EXTENT {
            let span = |count| vec![Span { start: 0, count }];
            return KeySegments { past: span(rows), mask: span(total) };
        }
        let past = even_spans(rows, rows.div_ceil(MAX_EXTENT));
        let mask = past.iter().copied().chain([Span { start: rows, count: tokens }]).collect();
        KeySegments { past, mask }
    }

    /// Whether there is more than one segment.
    pub(crate) fn is_cut(&self) -> bool {
        self.mask.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(spans: &[Span]) -> Vec<usize> {
        spans.iter().map(|span| span.count).collect()
    }

    #[test]
    fn spans_cover_the_total_and_differ_by_one_at_most() {
        let spans = even_spans(10, 4);
        assert_eq!(sizes(&spans), [3, 3, 2, 2]);
        assert_eq!(spans[3], Span { start: 8, count: 2 });
    }

    #[test]
    fn keys_are_cut_only_where_they_do_not_fit() {
        let whole = KeySegments::new(16_320, 64);
        assert!(!whole.is_cut());
        assert_eq!((sizes(&whole.past), sizes(&whole.mask)), (vec![16_320], vec![16_384]));
        let cut = KeySegments::new(16_384, 1);
        assert_eq!((sizes(&cut.past), sizes(&cut.mask)), (vec![16_384], vec![16_384, 1]));
        let long = KeySegments::new(32_768, 64);
        assert_eq!(long.mask[2], Span { start: 32_768, count: 64 });
        assert_eq!(sizes(&long.past), [16_384, 16_384]);
    }
}
