//! OpenAI's API over HTTP, for any bundle lone runs.
//!
//! A request is taken apart field by field and whatever is wrong with it is said by name; what is left is tokens and
//! settings for the engine's [`Scheduler`](lone_engine::Scheduler). Its news come back as JSON, or as server-sent
//! events. No field is ever ignored in silence: docs/api.md lists those that make no difference.

#![forbid(unsafe_code)]

mod about;
mod answers;
mod chat;
mod completions;
mod connection;
mod error;
mod guard;
mod identity;
mod meter;
mod metrics;
mod model;
mod openapi;
mod options;
mod page;
mod reply;
mod request;
mod responses;
mod router;
mod server;
mod sse;
mod state;
mod tally;
mod text;

pub use model::ServedModel;
pub use options::ServeOptions;
pub use server::serve;
pub use state::Server;
