//! Sessions kept after their jobs, for prompts that begin as theirs did.
//!
//! A job gets the session that holds most of its prompt. If that session holds much else besides, it is kept for
//! whoever comes back to it and the job gets a copy, as long as there is room, or another session was used less
//! recently. So chats that grow go on where they were, and chats that share a beginning read it once. What two sessions
//! hold is kept in one.

use std::cmp::Reverse;

use super::{Proposers, SchedulerOptions};
use crate::{EngineError, Runtime, Session, SessionOptions};

/// Tokens of a session that may be lost without asking whether to keep them.
const SMALL_LOSS: usize = 64;

/// The sessions nobody uses now, and how much memory all may take.
#[derive(Debug)]
pub(super) struct SessionPool {
    /// The least recently used first.
    idle: Vec<Session>,
    lent: usize,
    /// Most tokens of a session.
    ctx: usize,
    /// Of one session with that many, without snapshots.
    session_bytes: u64,
    most_bytes: u64,
    options: SessionOptions,
    proposers: Option<Proposers>,
}

impl SessionPool {
    /// A pool of `count` empty sessions.
    pub(super) fn new(
        runtime: &Runtime,
        options: &SchedulerOptions,
        count: usize,
    ) -> Result<Self, EngineError> {
        let SchedulerOptions { session: options, cache_bytes: most_bytes, ref proposers, .. } = *options;
        let first = runtime.session(&options)?;
        let (ctx, proposers) = (first.ctx(), proposers.clone());
        let session_bytes = runtime.bundle().cache_bytes(ctx);
        let rest = (1..count).map(|_| runtime.session(&options));
        let idle = std::iter::once(Ok(first)).chain(rest).collect::<Result<Vec<_>, _>>()?;
        let mut pool = SessionPool { idle, lent: 0, ctx, session_bytes, most_bytes, options, proposers };
        for session in &mut pool.idle {
            equip(session, pool.proposers.as_ref(), runtime)?;
        }
        Ok(pool)
    }

    /// The session to answer `prompt` in.
    pub(super) fn take(&mut self, runtime: &Runtime, prompt: &[u32]) -> Result<Session, EngineError> {
        let mut session = self.choose(runtime, prompt)?;
        equip(&mut session, self.proposers.as_ref(), runtime)?;
        self.lent += 1;
        Ok(session)
    }

    fn choose(&mut self, runtime: &Runtime, prompt: &[u32]) -> Result<Session, EngineError> {
        let reusable = |index: &usize| self.idle[*index].reusable_prefix(prompt);
        // Of those that hold equally much of it, the one that holds least besides.
        let worth = |index: &usize| (reusable(index), Reverse(self.idle[*index].position()));
        let best = (0..self.idle.len()).max_by_key(worth).filter(|index| reusable(index) > 0);
        let Some(best) = best else {
            return match self.idle.first() {
                // One that was never used is as good as a new one.
                Some(oldest) if oldest.position() == 0 || !self.has_room() => Ok(self.idle.remove(0)),
                _ => runtime.session(&self.options),
            };
        };
        let kept = reusable(&best);
        if self.idle[best].position() - kept <= SMALL_LOSS {
            return Ok(self.idle.remove(best));
        }
        if self.has_room() {
            return Ok(self.idle[best].fork(kept)?);
        }
        // The least recently used one makes room, unless it is the one to copy.
        let Some(oldest) = (0..self.idle.len()).find(|&index| index != best) else {
            return Ok(self.idle.remove(best));
        };
        let best = if oldest < best { best - 1 } else { best };
        drop(self.idle.remove(oldest));
        Ok(self.idle[best].fork(kept)?)
    }

    /// Keeps `session` for later, at the cost of older ones if need be.
    pub(super) fn give_back(&mut self, session: Session) {
        self.lent -= 1;
        // One that holds the same and more does as well, and was of use just now.
        let session = match self.idle.iter().position(|idle| holds_all_of(idle, &session)) {
            Some(index) => self.idle.remove(index),
            None => session,
        };
        self.idle.retain(|idle| !holds_all_of(&session, idle));
        self.idle.push(session);
        while self.idle.len() > 1 && self.bytes() > self.most_bytes {
            self.idle.remove(0);
        }
    }

    /// Takes note that a session that was lent will not come back.
    pub(super) fn write_off(&mut self) {
        self.lent -= 1;
    }

    /// Sessions, lent or not.
    pub(super) fn len(&self) -> usize {
        self.idle.len() + self.lent
    }

    /// Most tokens of a session.
    pub(super) fn ctx(&self) -> usize {
        self.ctx
    }

    /// Bytes of all sessions; those that are lent count as if they were full, without snapshots.
    pub(super) fn bytes(&self) -> u64 {
        let idle = self.idle.iter().map(|session| session.cache_bytes() + session.snapshot_bytes());
        idle.sum::<u64>() + self.lent as u64 * self.session_bytes
    }

    fn has_room(&self) -> bool {
        self.bytes() + self.session_bytes <= self.most_bytes
    }
}

/// Whether whoever comes back to `other` is served as well by `session`.
fn holds_all_of(session: &Session, other: &Session) -> bool {
    other.position() > 0 && session.reusable_prefix(other.tokens()) == other.position()
}

/// Gives a session that has nobody to guess its tokens one of `proposers`.
fn equip(session: &mut Session, proposers: Option<&Proposers>, runtime: &Runtime) -> Result<(), EngineError> {
    match proposers {
        Some(proposers) if session.proposer.is_none() => {
            Ok(session.set_proposer(runtime, Some(proposers.make()))?)
        }
        _ => Ok(()),
    }
}
