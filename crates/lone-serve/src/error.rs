//! What a request is refused with, in OpenAI's shape: `{"error": {message, type, param, code}}`.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lone_engine::{RequestError, SubmitError};
use lone_lfm::{ChatError, TokenizerError};
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a full queue is worth another try.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Why a request has no answer, and by whose fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    body: ErrorDetail,
    retry_after: Option<u64>,
}

/// The body of every refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
struct ErrorDetail {
    /// For people.
    message: String,
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `rate_limit_error`, `timeout_error` or `server_error`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The field that is at fault, such as `messages[0].content`.
    param: Option<String>,
    /// A word for programs, where OpenAI has one.
    code: Option<&'static str>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let body = ErrorDetail { message: message.into(), kind, param: None, code: None };
        ApiError { status, body, retry_after: None }
    }

    /// The asker's fault, in no field in particular.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// The asker's fault: what field `param` has. The message names the field, too.
    pub(crate) fn field(param: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        let param = param.into();
        ApiError::request(format!("`{param}` {problem}")).at(param)
    }

    /// A field this server does not have.
    pub(crate) fn unknown_field(param: impl Into<String>) -> Self {
        ApiError::field(param, "is not a field that this server supports here").coded("unsupported_parameter")
    }

    /// Ours.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        ApiError { status: StatusCode::NOT_FOUND, ..ApiError::request(message) }
    }

    pub(crate) fn method_not_allowed() -> Self {
        let error = ApiError::request("this address does not take this method");
        ApiError { status: StatusCode::METHOD_NOT_ALLOWED, ..error }
    }

    pub(crate) fn unknown_model(asked: &str, served: &[String]) -> Self {
        let message = format!("the model `{asked}` is not served here; served: {}", served.join(", "));
        ApiError::not_found(message).at("model").coded("model_not_found")
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        ApiError::new(StatusCode::UNAUTHORIZED, "authentication_error", message).coded("invalid_api_key")
    }

    pub(crate) fn not_json() -> Self {
        let error = ApiError::request("the body must be JSON, sent as `Content-Type: application/json`");
        ApiError { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, ..error }
    }

    pub(crate) fn body_too_large(most_bytes: usize) -> Self {
        let error = ApiError::request(format!("the body is larger than {most_bytes} bytes"));
        ApiError { status: StatusCode::PAYLOAD_TOO_LARGE, ..error }
    }

    pub(crate) fn slow_body(limit: Duration) -> Self {
        let message = format!("the body did not arrive within {} s", limit.as_secs_f64());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout_error", message)
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        let message = format!("the answer took longer than {} s", limit.as_secs_f64());
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout_error", message)
    }

    pub(crate) fn cut_off() -> Self {
        let message = "the server has ended before the answer had";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message)
    }

    pub(crate) fn foreign_origin(origin: &str) -> Self {
        let message =
            format!("pages of {origin} may not use this server: --cors-origin names those that may");
        let error = ApiError::new(StatusCode::FORBIDDEN, "permission_error", message);
        error.coded("foreign_origin")
    }

    /// The same, of field `param`.
    pub(crate) fn at(mut self, param: impl Into<String>) -> Self {
        self.body.param = Some(param.into());
        self
    }

    /// The same, where another try may succeed.
    pub(crate) fn for_now(mut self) -> Self {
        self.body.kind = "server_error";
        ApiError { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: Some(RETRY_AFTER_SECONDS), ..self }
    }

    pub(crate) fn coded(mut self, code: &'static str) -> Self {
        self.body.code = Some(code);
        self
    }

    /// The same, where field `from` came out of field `to`.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        if let Some(rest) = self.body.param.as_deref().and_then(|param| param.strip_prefix(from)) {
            let renamed = format!("{to}{rest}");
            self.body.message =
                self.body.message.replacen(&format!("`{from}{rest}`"), &format!("`{renamed}`"), 1);
            self.body.param = Some(renamed);
        }
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.body.message
    }

    /// The same, for a field of the object at `path`.
    pub(crate) fn within(mut self, path: &str) -> Self {
        if let Some(param) = self.body.param.take() {
            let whole = format!("{path}.{param}");
            self.body.message = self.body.message.replacen(&format!("`{param}`"), &format!("`{whole}`"), 1);
            self.body.param = Some(whole);
        }
        self
    }

    pub(crate) fn body(&self) -> ErrorBody {
        ErrorBody { error: self.body.clone() }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        let message = error.to_string();
        match error {
            RequestError::Setting { field, .. } => ApiError::request(message).at(field),
            RequestError::EmptyStop | RequestError::StopWithoutTokenizer => {
                ApiError::request(message).at("stop")
            }
            RequestError::PromptTooLong { .. } => ApiError::request(message).coded("context_length_exceeded"),
            _ => ApiError::request(message),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        let message = error.to_string();
        let error = match error {
            SubmitError::Full { .. } => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message).coded("queue_full")
            }
            SubmitError::Closed => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message),
        };
        ApiError { retry_after: Some(RETRY_AFTER_SECONDS), ..error }
    }
}

impl From<TokenizerError> for ApiError {
    fn from(error: TokenizerError) -> Self {
        ApiError::internal(error.to_string())
    }
}

impl From<ChatError> for ApiError {
    /// Conversations that a template does not take are the asker's fault, whether it says so or fails on them.
    fn from(error: ChatError) -> Self {
        ApiError::request(error.to_string()).at("messages")
    }
}
