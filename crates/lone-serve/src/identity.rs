//! Names for things that have none: responses, calls, requests.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// `prefix` and 24 hexadecimal digits that no other thing has.
pub(crate) fn fresh(prefix: &str) -> String {
    // Every `RandomState` hashes differently: enough for names, which are no secrets.
    let (a, b) = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    format!("{prefix}{a:016x}{:08x}", b >> 32)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What every response and every chunk of it begins with.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) fingerprint: String,
}
