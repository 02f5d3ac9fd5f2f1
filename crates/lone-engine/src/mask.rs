//! Additive attention masks, kept up to date as a session moves rather than rewritten each pass.
//!
//! A mask is (S queries) x (T cache rows ++ S own keys). What a query sees of the cache is an interval of absolute
//! positions that depends on the session's position alone; moving is painting the difference of two intervals, one
//! element a query for a plain decode. What it sees of its own pass never changes.
//!
//! A mask takes its memory at the first pass that needs it: shapes that no session comes to cost none.

use std::ops::Range;

use half::f16;
use lone_bundle::{Rows, Span};

use crate::RunError;
use crate::buffer::Buffer;

/// Added to the score of a key that is not seen: far below any score, and not so far that fp16 overflows.
const MASKED: f16 = f16::from_f32_const(-40000.0);
const SEEN: f16 = f16::ZERO;

/// What a mask is made of; two ports with the same are one mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaskShape {
    /// S.
    pub(crate) tokens: usize,
    /// Where positions live in the cache.
    pub(crate) rows: Rows,
    /// T.
    pub(crate) row_count: usize,
    /// Keys a query sees, its own included; all before it when absent.
    pub(crate) window: Option<usize>,
    /// The columns of the whole mask that this one has.
    pub(crate) columns: Span,
}

/// A mask as it stands before a pass at some position.
#[derive(Debug)]
pub(crate) struct Mask {
    shape: MaskShape,
    /// `(S, columns.count)`; nothing before the first pass.
    data: Buffer,
    /// `None` before the first pass.
    position: Option<usize>,
}

impl Mask {
    /// A mask of which there is nothing yet.
    pub(crate) fn new(shape: MaskShape) -> Self {
        Mask { shape, data: Buffer::empty(), position: None }
    }

    pub(crate) fn shape(&self) -> &MaskShape {
        &self.shape
    }

    pub(crate) fn data(&self) -> &Buffer {
        &self.data
    }

    /// Makes it the mask of a pass whose first token is at `position`, all positions before it being in the cache.
    pub(crate) fn move_to(&mut self, position: usize) -> Result<(), RunError> {
        let before = match self.position {
            Some(before) if before == position => return Ok(()),
            Some(before) => before,
            None => self.begin()?,
        };
        for query in 0..self.shape.tokens {
            let old = self.shape.seen(before, query);
            let new = self.shape.seen(position, query);
            // Hiding comes first: in a ring, a row that is hidden as one position may be seen as another.
            for hidden in difference(&old, &new) {
                self.paint_positions(query, hidden, MASKED);
            }
            for seen in difference(&new, &old) {
                self.paint_positions(query, seen, SEEN);
            }
        }
        self.position = Some(position);
        Ok(())
    }

    /// Takes its memory and becomes the mask of a session's first pass; returns the position of that.
    fn begin(&mut self) -> Result<usize, RunError> {
        self.data = Buffer::zeroed(self.shape.tokens * self.shape.columns.count)?;
        self.data.fill(MASKED);
        for query in 0..self.shape.tokens {
            let first = self.shape.window.map_or(0, |window| (query + 1).saturating_sub(window));
            let own = self.shape.row_count + first..self.shape.row_count + query + 1;
            self.paint_columns(query, own, SEEN);
        }
        Ok(0)
    }

    fn paint_positions(&mut self, query: usize, positions: Range<usize>, value: f16) {
        for rows in row_ranges(self.shape.rows, positions) {
            self.paint_columns(query, rows, value);
        }
    }

    /// Fills columns, counted over the whole mask, as far as this one has them.
    fn paint_columns(&mut self, query: usize, columns: Range<usize>, value: f16) {
        let Span { start, count } = self.shape.columns;
        let first = columns.start.max(start);
        let end = columns.end.min(start + count);
        if first < end {
            self.data[query * count..][first - start..end - start].fill(value);
        }
    }
}

impl MaskShape {
    /// The positions in the cache that `query` of a pass at `position` sees.
    fn seen(&self, position: usize, query: usize) -> Range<usize> {
        let kept = match self.rows {
            Rows::Context => 0,
            Rows::Ring(rows) => position.saturating_sub(rows),
        };
        let windowed = self.window.map_or(0, |window| (position + query + 1).saturating_sub(window));
        kept.max(windowed).min(position)..position
    }
}

/// The parts of `a` outside `b`: before it and after it.
fn difference(a: &Range<usize>, b: &Range<usize>) -> [Range<usize>; 2] {
    let before = a.start..b.start.clamp(a.start, a.end);
    let after = b.end.clamp(a.start, a.end)..a.end;
    [before, after]
}

/// The rows that hold `positions`, at most a ring's worth of them: one range, or two around a ring's end.
pub(crate) fn row_ranges(rows: Rows, positions: Range<usize>) -> [Range<usize>; 2] {
    let Rows::Ring(ring) = rows else {
        return [positions, 0..0];
    };
    let start = positions.start % ring;
    let end = start + positions.len();
    [start..end.min(ring), 0..end.saturating_sub(ring)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The whole mask by definition: every column is asked which position it holds, and whether the query sees it.
    fn brute_force(shape: &MaskShape, position: usize) -> Vec<f16> {
        let held = |column: usize| match shape.rows {
            _ if column >= shape.row_count => Some(position + column - shape.row_count),
            Rows::Context => Some(column).filter(|&held| held < position),
            Rows::Ring(ring) => (0..position).rev().find(|held| held % ring == column),
        };
        let sees = |query: usize, key: usize| {
            let query = position + query;
            key <= query && shape.window.is_none_or(|window| key + window > query)
        };
        let columns = shape.columns.start..shape.columns.end();
        (0..shape.tokens)
            .flat_map(|query| columns.clone().map(move |column| (query, column)))
            .map(|(query, column)| match held(column) {
                Some(key) if sees(query, key) => SEEN,
                _ => MASKED,
            })
            .collect()
    }

    fn shapes() -> impl Strategy<Value = MaskShape> {
        let rows = prop_oneof![(1usize..24).prop_map(Rows::Ring), Just(Rows::Context)];
        (1usize..9, rows, prop::option::of(1usize..24), 0usize..70, 0usize..70).prop_map(
            |(tokens, rows, window, a, b)| {
                let row_count = rows.count(48);
                let width = row_count + tokens;
                let (start, end) = (a.min(b) % width, a.max(b) % width + 1);
                let columns = Span { start, count: end.saturating_sub(start).max(1) };
                MaskShape { tokens, rows, row_count, window, columns }
            },
        )
    }

    proptest! {
        #[test]
        fn a_mask_moved_anywhere_is_the_mask_by_definition(
            shape in shapes(),
            positions in prop::collection::vec(0usize..=48, 1..8),
        ) {
            let mut mask = Mask::new(shape);
            prop_assert!(mask.data().is_empty());
            for position in positions {
                mask.move_to(position).unwrap();
                prop_assert_eq!(&mask.data()[..], &brute_force(&shape, position)[..], "at {}", position);
            }
        }
    }

    #[test]
    fn a_masked_key_weighs_minus_40000() {
        let columns = Span { start: 0, count: 3 };
        let shape = MaskShape { tokens: 1, rows: Rows::Context, row_count: 2, window: None, columns };
        let mut mask = Mask::new(shape);
        mask.move_to(1).unwrap();
        assert_eq!(mask.data()[..], [0.0, -40000.0, 0.0].map(f16::from_f32));
    }
}
