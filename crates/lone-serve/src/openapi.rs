//! The API's own description, made from the types it is made of.

use std::sync::LazyLock;

use axum::Json;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, ResponseBuilder};

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

/// What any request may be refused with.
const READING: [(&str, &str); 2] = [("401", "A key is missing, or wrong"), ("500", "A fault in the server")];

/// What a request with a body may be refused with besides.
const ASKING: [(&str, &str); 5] = [
    ("408", "The body came too slowly"),
    ("413", "The body is too large"),
    ("415", "The body was not sent as JSON"),
    ("503", "The server is about to stop"),
    ("504", "The answer took too long"),
];

/// Says that `operation` may be refused with `statuses`, where it does not say so itself.
fn add_refusals(operation: &mut Operation, statuses: &[(&str, &str)]) {
    for (status, description) in statuses {
        let content = Content::new(Some(Ref::from_schema_name("ErrorBody")));
        let response = ResponseBuilder::new().description(*description).content("application/json", content);
        operation.responses.responses.entry((*status).to_owned()).or_insert_with(|| response.build().into());
    }
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(crate) async fn document() -> Json<&'static Document> {
    static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
        let mut document = Api::openapi();
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        document.components.get_or_insert_default().add_security_scheme("key", SecurityScheme::Http(key));
        for path in document.paths.paths.values_mut() {
            path.get.iter_mut().for_each(|operation| add_refusals(operation, &READING));
            path.post
                .iter_mut()
                .for_each(|operation| add_refusals(operation, &[READING.as_slice(), &ASKING].concat()));
        }
        document
    });
    Json(&DOCUMENT)
}
