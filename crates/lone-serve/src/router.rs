//! Which address leads where.

use std::any::Any;

use axum::Router;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::error::ApiError;
use crate::guard::guard;
use crate::state::Shared;
use crate::{about, chat, completions, openapi, page, responses, text};

/// The whole API of `server`.
pub(crate) fn router(server: Shared) -> Router {
    let cors = cors(&server.options.cors_origins);
    Router::new()
        .route("/", get(page::page))
        .route("/openapi.json", get(openapi::document))
        .route("/health", get(about::health))
        .route("/metrics", get(about::metrics))
        .route("/props", get(about::props))
        .route("/v1/models", get(about::models))
        .route("/v1/models/{*id}", get(about::model))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/responses", post(responses::create))
        .route("/tokenize", post(text::tokenize))
        .route("/detokenize", post(text::detokenize))
        .route("/apply-template", post(text::apply_template))
        .fallback(async || ApiError::not_found("there is nothing at this address"))
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(server.clone(), guard))
        .layer(cors)
        .with_state(server)
}

/// Which other origins' pages may read answers.
fn cors(origins: &[String]) -> CorsLayer {
    let allowed = match origins.iter().any(|origin| origin == "*") {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok())),
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([header::HeaderName::from_static("x-request-id")])
}

fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    ApiError::internal("a fault in the server; its log says more").into_response()
}
