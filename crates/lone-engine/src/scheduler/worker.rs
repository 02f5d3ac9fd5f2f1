//! The engine's thread: a pass for each job in turn.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lone_lfm::Tokenizer;

use super::pool::SessionPool;
use super::queue::{Load, Queue};
use super::{Ended, Job, Listener, News};
use crate::{EngineError, Event, Generation, Request, Runtime, Session};

/// What the thread owns.
pub(super) struct Worker {
    runtime: Runtime,
    tokenizer: Option<Arc<Tokenizer>>,
    pool: SessionPool,
    queue: Arc<Queue>,
    active: Vec<Active>,
}

/// A job in its slot.
struct Active {
    listener: Box<dyn Listener>,
    /// Number of the request that is being answered.
    index: usize,
    generation: Generation,
    /// The requests after it.
    rest: VecDeque<Request>,
    session: Session,
}

/// What became of a job in its turn.
enum Turn {
    GoesOn,
    Over,
    /// As over, and its session is not to be trusted.
    Broken,
}

impl Worker {
    pub(super) fn new(
        runtime: Runtime,
        tokenizer: Option<Arc<Tokenizer>>,
        pool: SessionPool,
        queue: Arc<Queue>,
    ) -> Self {
        Worker { runtime, tokenizer, pool, queue, active: Vec::new() }
    }

    /// Works until the queue says that there is nothing left.
    pub(super) fn run(mut self) {
        while let Some(jobs) = self.queue.take(self.load()) {
            for job in jobs {
                self.admit(job);
            }
            self.give_turns();
        }
    }

    fn load(&self) -> Load {
        Load {
            waiting: 0,
            active: self.active.len(),
            sessions: self.pool.len(),
            session_bytes: self.pool.bytes(),
        }
    }

    fn admit(&mut self, job: Job) {
        let Job { requests, mut listener } = job;
        let mut rest = VecDeque::from(requests);
        let Some(request) = rest.pop_front().filter(|_| !listener.is_gone()) else { return };
        let mut session = match self.pool.take(&self.runtime, &request.prompt) {
            Ok(session) => session,
            Err(error) => return listener.hear(0, error.into()),
        };
        match Generation::begin(&self.runtime, &mut session, self.tokenizer.clone(), request) {
            Ok(generation) => self.active.push(Active { listener, index: 0, generation, rest, session }),
            Err(error) => {
                self.pool.give_back(session);
                listener.hear(0, error.into());
            }
        }
    }

    /// One pass for each slot.
    fn give_turns(&mut self) {
        let mut index = 0;
        while index < self.active.len() {
            match self.active[index].turn(&mut self.runtime, self.tokenizer.as_ref()) {
                Turn::GoesOn => index += 1,
                Turn::Over => self.pool.give_back(self.active.remove(index).session),
                Turn::Broken => {
                    self.active.remove(index);
                    self.pool.write_off();
                }
            }
        }
    }
}

impl Drop for Worker {
    /// Nobody waits for a job that comes after this thread, whatever ended it.
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl Active {
    fn turn(&mut self, runtime: &mut Runtime, tokenizer: Option<&Arc<Tokenizer>>) -> Turn {
        if self.listener.is_gone() {
            self.generation.cancel(&mut self.session, &mut |_| ());
            return Turn::Over;
        }
        // A panic is the end of this job and of nothing else.
        match catch_unwind(AssertUnwindSafe(|| self.step(runtime))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return self.fail(error.into()),
            Err(_) => return self.fail(News::Failed("a panic in the engine".into())),
        }
        let Some(reason) = self.generation.finish_reason() else { return Turn::GoesOn };
        let generation = &self.generation;
        let tokens = generation.token_ids().len();
        let ended = Ended { reason, tokens, stats: generation.stats(), seed: generation.seed() };
        self.listener.hear(self.index, News::Ended(ended));
        let Some(request) = self.rest.pop_front() else { return Turn::Over };
        self.index += 1;
        match Generation::begin(runtime, &mut self.session, tokenizer.cloned(), request) {
            Ok(generation) => {
                self.generation = generation;
                Turn::GoesOn
            }
            Err(error) => {
                self.listener.hear(self.index, error.into());
                Turn::Over
            }
        }
    }

    fn step(&mut self, runtime: &mut Runtime) -> Result<(), EngineError> {
        let Active { listener, index, generation, session, .. } = self;
        generation.step(runtime, session, &mut |event| match event {
            Event::Done(_) => {}
            event => listener.hear(*index, News::Event(event)),
        })
    }

    fn fail(&mut self, news: News) -> Turn {
        self.listener.hear(self.index, news);
        Turn::Broken
    }
}
