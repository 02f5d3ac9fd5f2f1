//! The rows of the caches that hold something, in an order that does not depend on how the rows are divided.

use std::ops::Range;

use half::f16;
use lone_bundle::{CacheKind, Rows};

use super::{CacheShape, Caches};

impl Caches {
    /// What a session of `position` tokens has in here, cache by cache, head by head, row by row.
    pub(crate) fn used(&self, position: usize) -> impl Iterator<Item = &[f16]> {
        let caches = self.layout.caches.iter().zip(&self.caches);
        caches.flat_map(move |(shape, stored)| {
            let ranges = shape.used(position).into_iter();
            ranges.map(|(segment, range)| &stored.segments[segment][range])
        })
    }

    /// Has `fill` write what [`Caches::used`] returned for `position`, in caches that were never written to.
    ///
    /// # Errors
    /// As `fill`.
    pub(crate) fn refill<E>(
        &mut self,
        position: usize,
        mut fill: impl FnMut(&mut [f16]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (shape, stored) in self.layout.caches.iter().zip(&mut self.caches) {
            for (segment, range) in shape.used(position) {
                fill(&mut stored.segments[segment][range])?;
            }
            if let CacheKind::Key { rows: Rows::Ring(ring), .. }
            | CacheKind::Value { rows: Rows::Ring(ring), .. } = shape.cache.kind
            {
                // The row before that may have been overwritten in whatever session this was.
                stored.oldest = (position + 1).saturating_sub(ring);
            }
        }
        Ok(())
    }
}

impl CacheShape {
    /// Segments, and what of each, that hold what `position` tokens left.
    fn used(&self, position: usize) -> Vec<(usize, Range<usize>)> {
        let Some(kv) = self.kv() else {
            return vec![(0, 0..self.elements(self.segments[0].count))];
        };
        let rows = match kv.rows {
            Rows::Context => position,
            Rows::Ring(ring) => position.min(ring),
        };
        let heads =
            (0..kv.kv_heads).flat_map(|head| self.segments.iter().enumerate().map(move |it| (head, it)));
        let used = heads.map(|(head, (segment, held))| {
            let count = rows.min(held.end()).saturating_sub(held.start);
            let start = head * held.count * kv.head_dim;
            (segment, start..start + count * kv.head_dim)
        });
        used.collect()
    }
}
