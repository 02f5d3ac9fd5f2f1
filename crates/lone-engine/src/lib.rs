//! Tokens in, tokens out: runs a bundle's graphs on any backend.
//!
//! A [`Runtime`] is a loaded bundle. A [`Session`] is one sequence with its caches; it grows by passes, of which only
//! accepted rows are ever written, and goes back to where another prompt parts from it.
//!
//! Letters used throughout: D hidden size, V vocabulary, S tokens of a pass, T rows of a cache, G key/value heads,
//! d head dimension, K convolution taps.

#![forbid(unsafe_code)]

mod buffer;
mod cache;
mod contract;
mod cover;
mod dialogue;
mod embeddings;
mod error;
#[cfg(test)]
mod fake;
mod generation;
mod grammar;
mod head;
mod load;
mod logprobs;
mod mask;
mod observe;
mod parts;
mod pipeline;
mod rotation;
mod runtime;
mod sampler;
mod sampling;
mod scheduler;
mod session;
mod snapshot;
mod speculation;
mod stats;
mod stops;
mod tools;

pub use dialogue::{Asked, Dialogue};
pub use error::{DialogueError, EngineError, LoadError, RequestError, RunError};
pub use generation::{Event, FinishReason, Generation, Request, raw_prompt};
pub use grammar::{CallSchema, Grammar, GrammarCompiler, GrammarError};
pub use load::LoadOptions;
pub use logprobs::Logprobs;
pub use observe::Observed;
pub use parts::{Part, Parts};
pub use runtime::Runtime;
pub use sampler::{Distribution, Sampler};
pub use sampling::Sampling;
pub use scheduler::{Ended, Job, Listener, Load, News, Proposers, Scheduler, SchedulerOptions, SubmitError};
pub use session::{Counters, Pass, SavedError, Session, SessionOptions};
pub use speculation::{Experience, NgramSimple, Proposer, Speculated, SuffixProposer, Terms};
pub use stats::{Phase, Stats};
pub use tools::{Tool, ToolCall, ToolMarks};
