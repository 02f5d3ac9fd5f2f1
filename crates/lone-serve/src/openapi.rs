//! The API's own description, made from the types it is made of.

use std::sync::LazyLock;

use axum::Json;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::error::ErrorBody;
use crate::reply::{ChatChunk, ChatCompletion, Completion};
use crate::request::{ChatRequest, CompletionRequest, TemplateTool};
use crate::responses::{ResponseObject, ResponsesRequest};
use crate::{about, chat, completions, responses, text};

#[derive(OpenApi)]
#[openapi(
    info(title = "lone", description = "OpenAI's API for language models on the Apple Neural Engine"),
    paths(
        chat::create, completions::create, responses::create, about::models, about::model, about::health, about::metrics,
        about::props, text::tokenize, text::detokenize, text::apply_template, document
    ),
    components(schemas(
        ChatRequest, ChatCompletion, ChatChunk, CompletionRequest, Completion, ResponsesRequest, ResponseObject,
        TemplateTool, ErrorBody
    )),
    security(("key" = []), ())
)]
struct Api;

/// This document.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(crate) async fn document() -> Json<&'static Document> {
    static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
        let mut document = Api::openapi();
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        document.components.get_or_insert_default().add_security_scheme("key", SecurityScheme::Http(key));
        document
    });
    Json(&DOCUMENT)
}
