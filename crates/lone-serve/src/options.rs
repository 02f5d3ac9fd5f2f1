//! What the operator decides.

use std::time::Duration;

/// How a server treats those who come to it.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Any of these must come with a request, as `Authorization: Bearer KEY`; none are needed if there are none.
    pub api_keys: Vec<String>,
    /// Origins whose pages may read answers; `*` is all.
    pub cors_origins: Vec<String>,
    /// Whether pages of origins that are neither this machine's nor named are refused, even if their browser takes this
    /// server for their own: a name of theirs may have been made to lead here (DNS rebinding).
    pub guards_origin: bool,
    /// Largest body of a request.
    pub most_body_bytes: usize,
    /// Connections at the same time; more wait to be accepted.
    pub most_connections: usize,
    /// From the request to the end of its answer.
    pub request_timeout: Duration,
    /// For the whole body of a request to arrive.
    pub body_timeout: Duration,
    /// For the head of a request to arrive, and for a connection to lie idle between two.
    pub idle_timeout: Duration,
    /// For a client to read some of what is written to it.
    pub write_timeout: Duration,
    /// For answers to come to their end when the server is to stop.
    pub shutdown_timeout: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            api_keys: Vec::new(),
            cors_origins: Vec::new(),
            guards_origin: false,
            most_body_bytes: 8 << 20,
            most_connections: 1024,
            request_timeout: Duration::from_secs(600),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}
