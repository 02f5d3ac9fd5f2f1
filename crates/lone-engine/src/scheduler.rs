//! Many askers, one engine: a bounded queue in front of one thread that owns the runtime.
//!
//! Jobs are taken up in the order they came, as many at a time as there are slots, and each slot gets a pass in turn:
//! a long answer does not hold up a short one. Whoever asked is looked at before each pass, and a job nobody waits
//! for ends there. What a session remembers outlives its job: see [`pool`].

mod pool;
mod queue;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use lone_lfm::Tokenizer;

use crate::{
    EngineError, Event, FinishReason, Proposer, Request, RequestError, RunError, Runtime, SessionOptions,
    Stats,
};
use pool::SessionPool;
use queue::Queue;
use worker::Worker;

pub use queue::{Load, SubmitError};

/// Makes whoever guesses the tokens of a session.
#[derive(Clone)]
pub struct Proposers(Arc<dyn Fn() -> Box<dyn Proposer> + Send + Sync>);

impl Proposers {
    /// One that `make` makes, for each session.
    pub fn new(make: impl Fn() -> Box<dyn Proposer> + Send + Sync + 'static) -> Self {
        Proposers(Arc::new(make))
    }

    /// Another one.
    pub fn make(&self) -> Box<dyn Proposer> {
        self.0()
    }
}

impl fmt::Debug for Proposers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proposers").finish_non_exhaustive()
    }
}

/// How a scheduler works.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// How sessions are made.
    pub session: SessionOptions,
    /// Jobs answered at the same time, at least one.
    pub parallel: usize,
    /// Jobs that may wait besides.
    pub queue: usize,
    /// Bytes that caches and snapshots of all sessions may take. Each slot has a session, whatever this says.
    pub cache_bytes: u64,
    /// Who guesses tokens, if anybody does.
    pub proposers: Option<Proposers>,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        SchedulerOptions {
            session: SessionOptions::default(),
            parallel: 1,
            queue: 64,
            cache_bytes: 1 << 30,
            proposers: None,
        }
    }
}

/// Something to answer.
pub struct Job {
    /// Answered one after the other in the same session, so that what their prompts share is read once.
    pub requests: Vec<Request>,
    /// Who asked.
    pub listener: Box<dyn Listener>,
}

/// Whoever asked. It is dropped when the job is over; an answer that has not ended by then never will.
pub trait Listener: Send {
    /// Takes what there is to say of request number `index`. Must not wait: all jobs would.
    fn hear(&mut self, index: usize, news: News);

    /// Whether nobody wants to hear more.
    fn is_gone(&self) -> bool;
}

/// What there is to say of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A token or text; [`Event::Done`] is said as [`News::Ended`].
    Event(Event),
    /// The answer is complete.
    Ended(Ended),
    /// The answer cannot be what the request wants, and the job's later ones do not come.
    Refused(String),
    /// The answer failed, through no fault of whoever asked, and so do the job's later ones.
    Failed(String),
}

impl From<RequestError> for News {
    fn from(error: RequestError) -> Self {
        News::Refused(error.to_string())
    }
}

impl From<EngineError> for News {
    /// A grammar that cannot be followed to its end is the asker's.
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Request(error) => error.into(),
            EngineError::Run(RunError::Grammar(error)) => News::Refused(error.to_string()),
            EngineError::Run(error) => News::Failed(error.to_string()),
        }
    }
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// Why.
    pub reason: FinishReason,
    /// Its tokens, one that ended it included.
    pub tokens: usize,
    /// What it cost.
    pub stats: Stats,
    /// The seed that makes the same choices again.
    pub seed: u64,
}

/// The engine's thread and the queue in front of it. Dropping it ends all jobs where they are.
#[derive(Debug)]
pub struct Scheduler {
    queue: Arc<Queue>,
    ctx: usize,
    thread: Option<JoinHandle<()>>,
}

impl Scheduler {
    /// Starts a thread that answers with `runtime`, and allocates a session for each slot. Without a tokenizer there
    /// are tokens and no text.
    ///
    /// # Errors
    /// As [`Runtime::session`].
    ///
    /// # Panics
    /// If the system has no thread to give.
    pub fn start(
        runtime: Runtime,
        tokenizer: Option<Arc<Tokenizer>>,
        options: &SchedulerOptions,
    ) -> Result<Self, EngineError> {
        let parallel = options.parallel.max(1);
        let pool = SessionPool::new(&runtime, options, parallel)?;
        let ctx = pool.ctx();
        let load = Load { sessions: pool.len(), session_bytes: pool.bytes(), ..Load::default() };
        let queue = Arc::new(Queue::new(options.queue, parallel, load));
        let worker = Worker::new(runtime, tokenizer, pool, Arc::clone(&queue));
        let thread = std::thread::Builder::new().name("lone-engine".into()).spawn(move || worker.run());
        Ok(Scheduler { queue, ctx, thread: Some(thread.expect("the system gives a thread")) })
    }

    /// Most tokens a prompt and its answer can have together.
    pub fn ctx(&self) -> usize {
        self.ctx
    }

    /// Puts `job` at the end of the queue.
    ///
    /// # Errors
    /// [`SubmitError`], the job having been dropped.
    pub fn submit(&self, job: Job) -> Result<(), SubmitError> {
        self.queue.push(job)
    }

    /// What there is to do, and what is kept.
    pub fn load(&self) -> Load {
        self.queue.load()
    }

    /// Takes no more jobs; those that were taken go on to their end.
    pub fn close(&self) {
        self.queue.close();
    }

    /// Whether jobs can still be answered: it is not closed, and its thread is there.
    pub fn is_open(&self) -> bool {
        !self.queue.is_closed() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.queue.abandon();
        if let Some(thread) = self.thread.take() {
            // Its panic, if it had one, was reported by the panic hook.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
