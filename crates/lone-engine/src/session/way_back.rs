//! Going back: to where another prompt parts from the session, or to any position that can still be had.

use super::{Session, layout_of};
use crate::RunError;

/// How a position is come back to.
enum WayBack {
    /// By forgetting the rows after it.
    InPlace,
    /// By the snapshot taken there.
    Snapshot,
    /// By beginning anew.
    Reset,
}

impl Session {
    /// Goes back to the longest common prefix of the session and `prompt` that can be had, and returns its length.
    /// If that is all of `prompt`, the logits are there.
    pub fn keep_prefix_of(&mut self, prompt: &[u32]) -> usize {
        if self.forget_all_but(prompt) == prompt.len() && !self.has_logits {
            self.rewind(prompt.len().saturating_sub(1));
        }
        self.position()
    }

    /// Forgets all that is not a beginning of `tokens`, and returns how many are left: fewer than there are in common
    /// where that place cannot be had.
    pub fn forget_all_but(&mut self, tokens: &[u32]) -> usize {
        self.rewind(self.common_prefix(tokens))
    }

    /// How many tokens of `prompt` [`Session::keep_prefix_of`] would find there; it may find one block fewer where
    /// that is all of the prompt.
    pub fn reusable_prefix(&self, prompt: &[u32]) -> usize {
        let common = self.common_prefix(prompt);
        if common == self.position() { common } else { self.way_back(common).0 }
    }

    /// Goes back to `position`, or if that cannot be had to the last position before it that can, and returns where
    /// the session stands now.
    ///
    /// Any position can be had whose rows and windows are still there, and any with a snapshot: one is kept every few
    /// blocks and at every end of a turn, as many as [`SessionOptions::snapshots`](super::SessionOptions) says.
    pub fn rewind(&mut self, position: usize) -> usize {
        if position >= self.position() {
            return self.position();
        }
        let (reached, way) = self.way_back(position);
        self.has_logits = false;
        match way {
            WayBack::InPlace => {}
            WayBack::Reset => {
                self.caches.reset();
                // Without memory for small caches the large ones serve as well.
                let _ = self.caches.relay(layout_of(&self.layouts, self.rungs.shortest()), 0);
            }
            WayBack::Snapshot => {
                let snapshot = self.snapshots.last_until(reached).expect("the way back leads there");
                self.caches.restore(&snapshot.caches);
                if let Some(logits) = &snapshot.logits {
                    self.logits.copy_from_slice(logits);
                    self.has_logits = true;
                }
            }
        }
        self.tokens.truncate(reached);
        self.snapshots.forget_after(reached);
        reached
    }

    /// Another session that holds this one's tokens before `position`, or as many of them as can be had. Both go on
    /// from there on their own, and nobody guesses for the other.
    ///
    /// # Errors
    /// [`RunError::Memory`].
    pub fn fork(&self, position: usize) -> Result<Session, RunError> {
        let mut fork = Session {
            caches: self.caches.duplicate()?,
            layouts: self.layouts.clone(),
            rungs: self.rungs.clone(),
            tokens: self.tokens.clone(),
            logits: self.logits.clone(),
            has_logits: self.has_logits,
            snapshots: self.snapshots.until(position),
            counters: super::Counters::default(),
            proposer: None,
        };
        fork.rewind(position);
        Ok(fork)
    }

    fn common_prefix(&self, prompt: &[u32]) -> usize {
        self.tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count()
    }

    /// Where going back to `position`, which is before the session's, leads, and how.
    fn way_back(&self, position: usize) -> (usize, WayBack) {
        let snapshot = self.snapshots.last_until(position).map(|snapshot| snapshot.position);
        let in_place = !self.caches.have_windows() && self.caches.can_rewind_rows_to(position);
        match snapshot {
            Some(at) if at == position || !in_place => (at, WayBack::Snapshot),
            _ if in_place && position > 0 => (position, WayBack::InPlace),
            _ => (0, WayBack::Reset),
        }
    }
}
