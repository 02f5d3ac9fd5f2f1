//! What a session keeps for its layers between passes, and how a pass's accepted rows get there.
//!
//! A K/V cache has a row a position, or is a ring of W rows with position p in row p % W; a convolution keeps its
//! last K-1 inputs. Only accepted rows are ever written: a ring row holds the position W earlier until then, which
//! the next pass still needs. Caches longer than an axis may be lie in segments, each a tensor of its own.

mod used;

use std::sync::Arc;

use half::f16;
use lone_bundle::{Cache, CacheKind, Rows, Span};

use crate::RunError;
use crate::buffer::{Buffer, PAGE_BYTES};
use crate::mask::row_ranges;

/// How the caches of one context length lie in memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CacheLayout {
    /// Rows of a cache that has one for each position.
    pub(crate) ctx: usize,
    /// As in the bundle's list.
    pub(crate) caches: Vec<CacheShape>,
}

impl CacheLayout {
    /// Memory for the segments of `shape`, one of the caches.
    fn memory_of(&self, shape: &CacheShape, wired: bool) -> Result<Vec<Buffer>, RunError> {
        let buffer = |rows: &Span| Buffer::for_cache(shape.elements(rows.count), wired);
        let buffers: Result<Vec<_>, _> = shape.segments.iter().map(buffer).collect();
        buffers.map_err(|error| match error {
            // Whoever raises the limit wants to know for how much, which is all caches.
            RunError::Wire { source, .. } => RunError::Wire { bytes: self.wired_bytes(), source },
            error => error,
        })
    }

    /// What all caches take when they are locked, each in pages of its own.
    fn wired_bytes(&self) -> u64 {
        let pages = |shape: &CacheShape, rows: &Span| {
            (2 * shape.elements(rows.count) as u64).next_multiple_of(PAGE_BYTES as u64)
        };
        let of = |shape: &CacheShape| shape.segments.iter().map(|rows| pages(shape, rows)).sum::<u64>();
        self.caches.iter().map(of).sum()
    }
}

/// One cache: what it holds, and the rows of each of its segments, in order and without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheShape {
    pub(crate) cache: Cache,
    pub(crate) segments: Vec<Span>,
}

/// The caches of one session.
#[derive(Debug, Clone)]
pub(crate) struct Caches {
    layout: Arc<CacheLayout>,
    caches: Vec<Stored>,
    /// Whether they are locked in memory.
    wired: bool,
}

#[derive(Debug, Clone)]
struct Stored {
    /// K/V `(1, G, rows, d)` each, convolution `(1, D, K-1, 1)`.
    segments: Vec<Buffer>,
    /// The first position from which on all are here. Rings forget; for the others it stays 0.
    oldest: usize,
}

/// What cannot be had back by forgetting the newest rows: convolution windows and rings, as they stood.
#[derive(Debug, Clone)]
pub(crate) struct SavedCaches(Vec<Stored>);

impl Caches {
    pub(crate) fn new(layout: Arc<CacheLayout>, wired: bool) -> Result<Self, RunError> {
        let caches = layout
            .caches
            .iter()
            .map(|shape| Ok(Stored { segments: layout.memory_of(shape, wired)?, oldest: 0 }));
        let caches = caches.collect::<Result<_, RunError>>()?;
        Ok(Caches { layout, caches, wired })
    }

    /// A copy in memory of its own.
    pub(crate) fn duplicate(&self) -> Result<Self, RunError> {
        let mut copy = Caches::new(self.layout.clone(), self.wired)?;
        for (to, from) in copy.caches.iter_mut().zip(&self.caches) {
            to.overwrite(from);
        }
        Ok(copy)
    }

    pub(crate) fn layout(&self) -> &Arc<CacheLayout> {
        &self.layout
    }

    /// One tensor of cache number `cache`, as graphs take it.
    pub(crate) fn segment(&self, cache: usize, segment: usize) -> &Buffer {
        &self.caches[cache].segments[segment]
    }

    /// Every tensor there is, with the number of its cache.
    #[cfg(test)]
    pub(crate) fn segments(&self) -> impl Iterator<Item = (usize, &Buffer)> {
        let caches = self.caches.iter().enumerate();
        caches.flat_map(|(cache, stored)| stored.segments.iter().map(move |segment| (cache, segment)))
    }

    /// Moves to `layout`, which has at least `rows` rows of context, with the first `rows` positions. What does not
    /// depend on the context stays as it is. If there is no memory for it, nothing has changed.
    pub(crate) fn relay(&mut self, layout: Arc<CacheLayout>, rows: usize) -> Result<(), RunError> {
        let old = Arc::clone(&self.layout);
        let moves = |cache: usize| old.caches[cache].segments != layout.caches[cache].segments;
        // Zeroed memory costs nothing before it is written, so all can be had before anything is given up.
        let mut new = Vec::new();
        for (cache, shape) in layout.caches.iter().enumerate().filter(|(cache, _)| moves(*cache)) {
            new.push((cache, layout.memory_of(shape, self.wired)?));
        }
        for (cache, mut segments) in new {
            let kv = layout.caches[cache].kv().expect("only rows of context depend on the context");
            for (from, held) in self.caches[cache].segments.iter().zip(&old.caches[cache].segments) {
                let count = held.count.min(rows.saturating_sub(held.start));
                for (to, holds) in segments.iter_mut().zip(&layout.caches[cache].segments) {
                    kv.write(to, *holds, held.start, from, Span { start: 0, count });
                }
            }
            self.caches[cache].segments = segments;
        }
        self.layout = layout;
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.caches.iter().flat_map(|cache| &cache.segments).map(Buffer::bytes).sum()
    }

    /// Takes what a pass returned for cache number `cache`, as far as its first `accepted` tokens go. The pass was
    /// at `position`; `new` is `(1, G, S, d)` for K/V and `(1, D, K-1+S, 1)` for a convolution.
    pub(crate) fn accept(&mut self, cache: usize, position: usize, new: &[f16], accepted: usize) {
        let shape = &self.layout.caches[cache];
        let stored = &mut self.caches[cache];
        let Some(kv) = shape.kv() else {
            return slide_window(&mut stored.segments[0], new, shape.segments[0].count, accepted);
        };
        let kept = match kv.rows {
            Rows::Context => accepted,
            Rows::Ring(ring) => accepted.min(ring),
        };
        let mut start = accepted - kept;
        for rows in row_ranges(kv.rows, position + start..position + accepted) {
            let count = rows.len();
            for (segment, held) in stored.segments.iter_mut().zip(&shape.segments) {
                kv.write(segment, *held, rows.start, new, Span { start, count });
            }
            start += count;
        }
        if let Rows::Ring(ring) = kv.rows {
            stored.oldest = stored.oldest.max((position + accepted).saturating_sub(ring));
        }
    }

    /// Whether a pass at `position` would find every key it may see, given that no later one is to be seen.
    pub(crate) fn can_rewind_rows_to(&self, position: usize) -> bool {
        self.layout.caches.iter().zip(&self.caches).all(|(shape, stored)| match shape.kv() {
            Some(KvShape { rows: Rows::Ring(ring), .. }) => {
                stored.oldest <= (position + 1).saturating_sub(ring)
            }
            _ => true,
        })
    }

    /// Whether anything here can only be rewound by a saved copy.
    pub(crate) fn have_windows(&self) -> bool {
        self.layout.caches.iter().any(|shape| shape.kv().is_none())
    }

    /// Back to before the first token.
    pub(crate) fn reset(&mut self) {
        for (shape, stored) in self.layout.caches.iter().zip(&mut self.caches) {
            stored.oldest = 0;
            if shape.kv().is_none() {
                stored.segments[0].fill(f16::ZERO);
            }
        }
    }

    /// A copy of the windows and rings; made in the memory of `spare` if there is one.
    pub(crate) fn save(&self, spare: Option<SavedCaches>) -> SavedCaches {
        let forgetful = self.forgetful().map(|(_, stored)| stored);
        let Some(mut saved) = spare else {
            return SavedCaches(forgetful.cloned().collect());
        };
        for (copy, stored) in saved.0.iter_mut().zip(forgetful) {
            copy.overwrite(stored);
        }
        saved
    }

    /// Puts windows and rings back as they stood when `saved` was made.
    pub(crate) fn restore(&mut self, saved: &SavedCaches) {
        let shapes = &self.layout.caches;
        let forgetful = shapes.iter().zip(&mut self.caches).filter(|(shape, _)| shape.is_forgetful());
        for ((_, stored), copy) in forgetful.zip(&saved.0) {
            stored.overwrite(copy);
        }
    }

    fn forgetful(&self) -> impl Iterator<Item = (&CacheShape, &Stored)> {
        self.layout.caches.iter().zip(&self.caches).filter(|(shape, _)| shape.is_forgetful())
    }
}

impl SavedCaches {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().flat_map(|cache| &cache.segments).map(Buffer::bytes).sum()
    }
}

impl Stored {
    fn overwrite(&mut self, with: &Stored) {
        self.oldest = with.oldest;
        for (to, from) in self.segments.iter_mut().zip(&with.segments) {
            to.copy_from_slice(from);
        }
    }
}

/// A K/V cache's shape, apart from how its rows are divided.
#[derive(Debug, Clone, Copy)]
struct KvShape {
    rows: Rows,
    kv_heads: usize,
    head_dim: usize,
}

impl CacheShape {
    /// `None` for a convolution's window.
    fn kv(&self) -> Option<KvShape> {
        match self.cache.kind {
            CacheKind::Key { rows, kv_heads, head_dim } | CacheKind::Value { rows, kv_heads, head_dim } => {
                Some(KvShape { rows, kv_heads, head_dim })
            }
            CacheKind::Conv { .. } => None,
        }
    }

    /// Whether older content cannot be had back by not looking at newer.
    fn is_forgetful(&self) -> bool {
        !matches!(self.kv(), Some(KvShape { rows: Rows::Context, .. }))
    }

    /// Elements of a segment of `rows` rows.
    fn elements(&self, rows: usize) -> usize {
        match self.cache.kind {
            CacheKind::Key { kv_heads, head_dim, .. } | CacheKind::Value { kv_heads, head_dim, .. } => {
                kv_heads * rows * head_dim
            }
            CacheKind::Conv { channels, .. } => channels * rows,
        }
    }
}

impl KvShape {
    /// Copies tokens `from` of `new (G, S, d)` to the cache's rows from `first_row` on, as far as `segment` holds
    /// them: it is `(G, held.count, d)`.
    fn write(self, segment: &mut [f16], held: Span, first_row: usize, new: &[f16], from: Span) {
        let first = first_row.max(held.start);
        let end = (first_row + from.count).min(held.end());
        if first >= end {
            return;
        }
        let KvShape { kv_heads, head_dim, .. } = self;
        let tokens = new.len() / (kv_heads * head_dim);
        let source = from.start + first - first_row;
        let elements = (end - first) * head_dim;
        for head in 0..kv_heads {
            let to = (head * held.count + first - held.start) * head_dim;
            let from = (head * tokens + source) * head_dim;
            segment[to..to + elements].copy_from_slice(&new[from..from + elements]);
        }
    }
}

/// `window (D, K-1)` becomes rows `accepted .. accepted + K-1` of `new (D, K-1+S)`.
fn slide_window(window: &mut [f16], new: &[f16], kept: usize, accepted: usize) {
    let given = new.len() / (window.len() / kept);
    for (to, from) in window.chunks_exact_mut(kept).zip(new.chunks_exact(given)) {
        to.copy_from_slice(&from[accepted..accepted + kept]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RING: usize = 5;

    /// A ring of keys in two segments, G = 2 and d = 1, each row holding its position.
    fn ring() -> Caches {
        let kind = CacheKind::Key { rows: Rows::Ring(RING), kv_heads: 2, head_dim: 1 };
        let segments = vec![Span { start: 0, count: 3 }, Span { start: 3, count: 2 }];
        let caches = vec![CacheShape { cache: Cache { layer: 0, kind }, segments }];
        Caches::new(CacheLayout { ctx: 100, caches }.into(), false).unwrap()
    }

    fn positions(start: usize, count: usize) -> Vec<f16> {
        [0, 1]
            .iter()
            .flat_map(|_| start..start + count)
            .map(|position| f16::from_f64(position as f64))
            .collect()
    }

    fn row(caches: &Caches, row: usize) -> [usize; 2] {
        let (segment, at, rows) = if row < 3 { (0, row, 3) } else { (1, row - 3, 2) };
        [0, 1].map(|head| caches.segment(0, segment)[head * rows + at].to_f32() as usize)
    }

    #[derive(Debug, Clone)]
    enum Move {
        Accept { of: usize, accepted: usize },
        Rewind(usize),
        Reset,
    }

    fn moves() -> impl Strategy<Value = Move> {
        prop_oneof![
            4 => (1usize..12, 0usize..12)
                .prop_map(|(of, accepted)| Move::Accept { of, accepted: accepted.min(of) }),
            2 => (0usize..4).prop_map(Move::Rewind),
            1 => Just(Move::Reset),
        ]
    }

    #[test]
    fn what_is_to_be_locked_is_counted_by_whole_pages() {
        assert_eq!(ring().layout.wired_bytes(), 2 * PAGE_BYTES as u64, "a page for each segment");
    }

    proptest! {
        #[test]
        fn a_ring_goes_back_just_as_far_as_its_rows_are_there(moves in prop::collection::vec(moves(), 1..12)) {
            let mut caches = ring();
            let mut held = [None; RING];
            let mut position = 0;
            for step in moves {
                match step {
                    Move::Accept { of, accepted } => {
                        caches.accept(0, position, &positions(position, of), accepted);
                        (position..position + accepted).for_each(|position| held[position % RING] = Some(position));
                        position += accepted;
                    }
                    Move::Rewind(back) => {
                        let target = position.saturating_sub(back);
                        let needed = (target + 1).saturating_sub(RING)..target;
                        let is_there = needed.clone().all(|position| held[position % RING] == Some(position));
                        prop_assert_eq!(caches.can_rewind_rows_to(target), is_there, "to {}", target);
                        if is_there {
                            position = target;
                        }
                    }
                    Move::Reset => {
                        caches.reset();
                        position = 0;
                    }
                }
                for seen in position.saturating_sub(RING - 1)..position {
                    prop_assert_eq!(row(&caches, seen % RING), [seen; 2]);
                }
            }
        }
    }

    /// Keys by position, G = 2 and d = 1, in segments of at most `most` rows.
    fn plain(ctx: usize, most: usize) -> Arc<CacheLayout> {
        let kind = CacheKind::Key { rows: Rows::Context, kv_heads: 2, head_dim: 1 };
        let segments = (0..ctx).step_by(most).map(|start| Span { start, count: most.min(ctx - start) });
        let cache = Cache { layer: 0, kind };
        CacheLayout { ctx, caches: vec![CacheShape { cache, segments: segments.collect() }] }.into()
    }

    #[test]
    fn rows_keep_their_positions_whatever_segments_they_move_to() {
        for (from, to) in [((5, 9), (12, 12)), ((12, 5), (20, 7)), ((20, 7), (6, 4)), ((4, 4), (9, 3))] {
            let mut caches = Caches::new(plain(from.0, from.1), false).unwrap();
            let held = from.0.min(to.0) - 1;
            caches.accept(0, 0, &positions(0, held), held);
            caches.relay(plain(to.0, to.1), held).unwrap();
            for position in 0..held {
                let (segment, row) = (position / to.1, position % to.1);
                let segment = caches.segment(0, segment);
                let rows = segment.len() / 2;
                let found = [0, 1].map(|head| segment[head * rows + row].to_f32() as usize);
                assert_eq!(found, [position; 2], "from {from:?} to {to:?}");
            }
            assert_eq!(caches.bytes(), 2 * 2 * to.0 as u64);
            assert!(caches.layout().wired_bytes() >= caches.bytes(), "known before there is memory");
        }
    }

    #[test]
    fn saved_caches_come_back_as_they_were_and_lend_their_memory() {
        let mut caches = ring();
        caches.accept(0, 0, &positions(0, 7), 7);
        let saved = caches.save(None);
        let before = caches.clone();
        caches.accept(0, 7, &positions(7, 4), 4);
        assert!(!caches.can_rewind_rows_to(7));
        let later = caches.save(Some(saved.clone()));
        caches.restore(&saved);
        assert!(caches.can_rewind_rows_to(7));
        assert_eq!(row(&caches, 2), row(&before, 2));
        assert_ne!(later.0[0].segments[0][..], saved.0[0].segments[0][..]);
    }
}
