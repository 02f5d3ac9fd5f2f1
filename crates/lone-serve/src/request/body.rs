//! A request's body: JSON, not too large, not too slow.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::Fields;
use crate::error::ApiError;
use crate::state::Shared;

/// Bytes of a body that is large: parsed, it may take seventy times the memory.
const LARGE: usize = 1 << 20;

/// A body that has arrived and is still to be parsed, where that holds up nobody.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Bytes,
    /// Only so many large ones are anywhere between here and the end of their preparation.
    _place: Option<OwnedSemaphorePermit>,
}

impl Body {
    /// The fields of the JSON object that it is.
    pub(crate) fn fields(&self) -> Result<Fields, ApiError> {
        match serde_json::from_slice(&self.bytes) {
            Ok(Value::Object(object)) => Ok(object.into()),
            Ok(_) => Err(ApiError::request("the body must be a JSON object")),
            Err(error) => Err(ApiError::request(format!("the body is not valid JSON: {error}"))),
        }
    }
}

impl FromRequest<Shared> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Shared) -> Result<Self, ApiError> {
        // A page of another origin can send anything else without asking; JSON makes its browser ask first.
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(is_json) {
            return Err(ApiError::not_json());
        }
        let most_bytes = server.options.most_body_bytes;
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        if length.and_then(|length| length.parse().ok()).is_some_and(|length: u64| length > most_bytes as u64)
        {
            return Err(ApiError::body_too_large(most_bytes));
        }
        let limit = server.options.body_timeout;
        let body = axum::body::to_bytes(request.into_body(), most_bytes);
        let body = tokio::time::timeout(limit, body).await.map_err(|_| ApiError::slow_body(limit))?;
        let bytes = body.map_err(|error| {
            let source = std::error::Error::source(&error);
            match source.is_some_and(|source| source.to_string().contains("length limit")) {
                true => ApiError::body_too_large(most_bytes),
                false => ApiError::request("the body did not arrive whole"),
            }
        })?;
        let place = if bytes.len() > LARGE { Some(place(server).await?) } else { None };
        Ok(Body { bytes, _place: place })
    }
}

/// A place among the large bodies, waited for as long as for an answer.
async fn place(server: &Shared) -> Result<OwnedSemaphorePermit, ApiError> {
    let limit = server.options.request_timeout;
    let place = tokio::time::timeout(limit, Arc::clone(&server.large_bodies).acquire_owned()).await;
    Ok(place.map_err(|_| ApiError::timed_out(limit))?.expect("the semaphore is never closed"))
}

fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
