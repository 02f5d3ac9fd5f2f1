//! Copies of what cannot be rewound, at a bounded number of positions.
//!
//! K/V rows by position survive until they are overwritten; convolution windows and rings do not. When there are too
//! many snapshots the one goes that leaves the smallest gap, ends of turns last, so that what stays is spread over
//! the whole history.

use crate::cache::{Caches, SavedCaches};

/// The snapshots of one session, by position.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// Ascending positions.
    kept: Vec<Snapshot>,
    limit: usize,
    /// The memory of dropped ones, for those to come.
    spare: Vec<SavedCaches>,
}

#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) position: usize,
    is_turn: bool,
    pub(crate) caches: SavedCaches,
    /// What the model predicts for `position`, if it was asked.
    pub(crate) logits: Option<Vec<f32>>,
}

impl Snapshots {
    pub(crate) fn with_limit(limit: usize) -> Self {
        Snapshots { limit, ..Snapshots::default() }
    }

    /// Keeps `caches` as they stand at `position`, which is not before any snapshot there is.
    pub(crate) fn take(&mut self, caches: &Caches, position: usize, is_turn: bool, logits: Option<&[f32]>) {
        if self.limit == 0 || position == 0 {
            return;
        }
        if self.kept.last().is_none_or(|last| last.position != position) {
            let caches = caches.save(self.spare.pop());
            self.kept.push(Snapshot { position, is_turn: false, caches, logits: None });
        }
        let snapshot = self.kept.last_mut().expect("one was kept just now");
        snapshot.is_turn |= is_turn;
        if let Some(logits) = logits.filter(|_| snapshot.logits.is_none()) {
            snapshot.logits = Some(logits.to_vec());
        }
        if self.kept.len() > self.limit {
            let index = self.least_missed();
            self.spare.push(self.kept.remove(index).caches);
        }
    }

    /// The last one at `position` or before.
    pub(crate) fn last_until(&self, position: usize) -> Option<&Snapshot> {
        self.kept.iter().rev().find(|snapshot| snapshot.position <= position)
    }

    /// Copies of those at `position` or before.
    pub(crate) fn until(&self, position: usize) -> Self {
        let kept = self.kept.iter().take_while(|snapshot| snapshot.position <= position);
        Snapshots { kept: kept.cloned().collect(), limit: self.limit, spare: Vec::new() }
    }

    /// Drops all after `position`: the history they belong to has changed. Where none is left, neither is their memory.
    pub(crate) fn forget_after(&mut self, position: usize) {
        let keep = self.kept.partition_point(|snapshot| snapshot.position <= position);
        self.spare.extend(self.kept.drain(keep..).map(|snapshot| snapshot.caches));
        if self.kept.is_empty() {
            self.spare.clear();
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let logits = self.kept.iter().filter_map(|snapshot| snapshot.logits.as_ref());
        let caches = self.kept.iter().map(|snapshot| &snapshot.caches).chain(&self.spare);
        caches.map(SavedCaches::bytes).sum::<u64>()
            + logits.map(|logits| 4 * logits.len() as u64).sum::<u64>()
    }

    fn least_missed(&self) -> usize {
        let gap = |index: usize| {
            let before = index.checked_sub(1).map_or(0, |index| self.kept[index].position);
            let after = self.kept.get(index + 1).map_or(usize::MAX, |snapshot| snapshot.position);
            after - before
        };
        let missed = |&index: &usize| (self.kept[index].is_turn, gap(index));
        (0..self.kept.len()).min_by_key(missed).expect("there are too many, so there is one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{CacheLayout, CacheShape};
    use lone_bundle::{Cache, CacheKind, Span};

    fn caches() -> Caches {
        let cache = Cache { layer: 0, kind: CacheKind::Conv { channels: 2, rows: 2 } };
        let segments = vec![Span { start: 0, count: 2 }];
        Caches::new(CacheLayout { ctx: 1, caches: vec![CacheShape { cache, segments }] }.into(), false)
            .unwrap()
    }

    fn positions(snapshots: &Snapshots) -> Vec<usize> {
        snapshots.kept.iter().map(|snapshot| snapshot.position).collect()
    }

    #[test]
    fn too_many_are_thinned_where_they_stand_closest_and_turns_stay_longest() {
        let mut snapshots = Snapshots::with_limit(3);
        for (position, is_turn) in [(10, false), (12, true), (50, false), (90, false), (100, true)] {
            snapshots.take(&caches(), position, is_turn, None);
        }
        assert_eq!(positions(&snapshots), [12, 50, 100]);
        snapshots.take(&caches(), 120, true, None);
        assert_eq!(positions(&snapshots), [12, 100, 120]);
        assert_eq!(snapshots.last_until(99).map(|snapshot| snapshot.position), Some(12));
    }

    #[test]
    fn the_same_position_is_kept_once_and_gains_what_it_lacked() {
        let mut snapshots = Snapshots::with_limit(3);
        snapshots.take(&caches(), 8, false, None);
        snapshots.take(&caches(), 8, true, Some(&[1.0]));
        assert_eq!(positions(&snapshots), [8]);
        assert_eq!(snapshots.last_until(8).unwrap().logits.as_deref(), Some(&[1.0][..]));
    }

    #[test]
    fn a_changed_history_drops_what_came_after() {
        let mut snapshots = Snapshots::with_limit(9);
        for position in [0, 8, 16, 24] {
            snapshots.take(&caches(), position, false, None);
        }
        snapshots.forget_after(16);
        assert_eq!(positions(&snapshots), [8, 16]);
        assert!(snapshots.last_until(7).is_none());
    }

    #[test]
    fn what_has_no_snapshots_left_keeps_no_memory_for_them() {
        let mut snapshots = Snapshots::with_limit(9);
        snapshots.take(&caches(), 8, false, None);
        snapshots.take(&caches(), 16, true, None);
        let both = snapshots.bytes();
        snapshots.forget_after(8);
        assert_eq!(snapshots.bytes(), both, "the next one will be made in it");
        snapshots.forget_after(0);
        assert_eq!(snapshots.bytes(), 0);
    }
}
