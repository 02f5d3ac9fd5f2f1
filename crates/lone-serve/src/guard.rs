//! What every request passes through: a name for it, the key, the log, the count.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use crate::error::ApiError;
use crate::identity::fresh;
use crate::options::ServeOptions;
use crate::state::Shared;

/// Where a request's name stands.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What anybody may read: the page, its description of the API, and whether the server is well.
const PUBLIC: [&str; 3] = ["/", "/openapi.json", "/health"];

/// Lets a request through, or not.
pub(crate) async fn guard(State(server): State<Shared>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = request_id(request.headers());
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_else(|| "other".into());
    let method = request.method().clone();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let is_allowed = PUBLIC.contains(&path.as_str()) || method == axum::http::Method::OPTIONS;
    let allowed = if is_allowed { Ok(()) } else { authorize(&server.options, request.headers()) };
    let mut response = match allowed {
        Ok(()) => next.run(request).instrument(span.clone()).await,
        Err(error) => error.into_response(),
    };
    response.headers_mut().insert(REQUEST_ID, id);
    let (status, after) = (response.status().as_u16(), start.elapsed());
    server.metrics.responded(&path, status, after);
    span.in_scope(|| tracing::info!(%method, path, status, seconds = after.as_secs_f64(), "responded"));
    response
}

/// The name the client gave the request, if it is one that can be logged, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let usable = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    let new = || HeaderValue::try_from(fresh("req_")).expect("letters and digits");
    headers.get(REQUEST_ID).filter(usable).cloned().unwrap_or_else(new)
}

/// Refuses pages that have no business here, and whoever has no key.
fn authorize(options: &ServeOptions, headers: &HeaderMap) -> Result<(), ApiError> {
    if options.guards_origin
        && let Some(origin) = headers.get(header::ORIGIN)
    {
        let origin = origin.to_str().unwrap_or_default();
        let is_named = options.cors_origins.iter().any(|named| named == origin || named == "*");
        if !is_named && !is_of_this_machine(origin) {
            return Err(ApiError::foreign_origin(origin));
        }
    }
    check_key(&options.api_keys, headers)
}

/// Whether an origin's host is this machine, or an address rather than a name: no name leads elsewhere that way.
fn is_of_this_machine(origin: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let host = origin.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok()
}

/// Looks for one of `keys`, if there are any. How long that takes does not depend on how much of a key is right:
/// hashes are compared, and in constant time.
fn check_key(keys: &[String], headers: &HeaderMap) -> Result<(), ApiError> {
    if keys.is_empty() {
        return Ok(());
    }
    let Some(given) = bearer(headers) else {
        return Err(ApiError::unauthorized("this server wants a key, sent as `Authorization: Bearer KEY`"));
    };
    let given = blake3::hash(given.as_bytes());
    match keys.iter().fold(false, |found, key| found | (blake3::hash(key.as_bytes()) == given)) {
        true => Ok(()),
        false => Err(ApiError::unauthorized("the key is not one of this server's")),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(authorization: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, authorization.parse().unwrap())])
    }

    #[test]
    fn any_of_the_keys_opens_and_nothing_else_does() {
        let keys = ["one".to_owned(), "two".to_owned()];
        for good in ["Bearer one", "bearer two", "Bearer  two "] {
            assert!(check_key(&keys, &headers(good)).is_ok(), "{good}");
        }
        for bad in ["Bearer on", "Bearer", "Basic one", "one", "Bearer "] {
            assert!(check_key(&keys, &headers(bad)).is_err(), "{bad}");
        }
        assert!(check_key(&keys, &HeaderMap::new()).is_err());
        assert!(check_key(&[], &HeaderMap::new()).is_ok());
    }

    #[test]
    fn pages_of_names_that_may_lead_anywhere_are_refused_unless_named() {
        let options = ServeOptions {
            guards_origin: true,
            cors_origins: vec!["https://app.example".into()],
            ..ServeOptions::default()
        };
        let of = |origin: &str| HeaderMap::from_iter([(header::ORIGIN, origin.parse().unwrap())]);
        let good =
            ["http://localhost:8082", "http://127.0.0.1:8082", "http://[::1]:8082", "https://app.example"];
        for origin in good {
            assert!(authorize(&options, &of(origin)).is_ok(), "{origin}");
        }
        for origin in ["http://evil.example:8082", "null", "http://localhost.evil.example", ""] {
            assert!(authorize(&options, &of(origin)).is_err(), "{origin}");
        }
        assert!(authorize(&options, &HeaderMap::new()).is_ok());
        let elsewhere = ServeOptions { guards_origin: false, ..options };
        assert!(authorize(&elsewhere, &of("http://evil.example")).is_ok());
    }

    #[test]
    fn a_clients_request_id_is_kept_if_it_is_fit_for_a_log() {
        let kept = |id: &str| {
            let headers =
                HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(id.as_bytes()).unwrap())]);
            request_id(&headers) == *id
        };
        assert!(kept("trace-1"));
        assert!(!kept("two words") && !kept("") && !kept(&"x".repeat(129)));
    }
}
