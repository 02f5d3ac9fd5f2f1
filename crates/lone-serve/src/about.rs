//! What the server says of itself: models, health, numbers, properties.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::model::ServedModel;
use crate::reply::as_written;
use crate::state::Shared;

/// A list of models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// `list`
    object: &'static str,
    data: Vec<ModelCard>,
}

/// A model that is served.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelCard {
    id: String,
    /// `model`
    object: &'static str,
    created: u64,
    /// `lone`
    owned_by: &'static str,
    meta: ModelMeta,
}

/// What is not in OpenAI's API.
#[derive(Debug, Serialize, ToSchema)]
struct ModelMeta {
    /// Tokens of prompt and answer together.
    n_ctx: usize,
    /// Tokens the checkpoint was made for.
    n_ctx_train: usize,
    n_vocab: usize,
    n_params: u64,
    model_type: String,
}

impl ModelCard {
    fn new(model: &ServedModel, id: &str) -> Self {
        let meta = ModelMeta {
            n_ctx: model.ctx,
            n_ctx_train: model.facts.max_positions,
            n_vocab: model.facts.vocab_size,
            n_params: model.facts.parameters,
            model_type: model.facts.model_type.clone(),
        };
        ModelCard { id: id.to_owned(), object: "model", created: model.created, owned_by: "lone", meta }
    }
}

/// The models served.
#[utoipa::path(get, path = "/v1/models", responses((status = 200, body = ModelList)))]
pub(crate) async fn models(State(server): State<Shared>) -> Json<ModelList> {
    let data = server.model.names.iter().map(|name| ModelCard::new(&server.model, name)).collect();
    Json(ModelList { object: "list", data })
}

/// One of them.
#[utoipa::path(
    get, path = "/v1/models/{id}", params(("id" = String, Path, description = "Its name")),
    responses((status = 200, body = ModelCard), (status = 404, description = "It is not served", body = ErrorBody))
)]
pub(crate) async fn model(
    State(server): State<Shared>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ModelCard>, ApiError> {
    let Path(id) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    server.model.check_name(Some(&id))?;
    Ok(Json(ModelCard::new(&server.model, &id)))
}

/// Whether requests are answered: 200, or 503 when the server is about to stop.
#[utoipa::path(
    get, path = "/health",
    responses((status = 200, description = "They are"), (status = 503, description = "They are not"))
)]
pub(crate) async fn health(State(server): State<Shared>) -> Response {
    let (status, word) = match server.scheduler.is_open() {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    (status, Json(json!({"status": word}))).into_response()
}

/// Numbers, as OpenMetrics text.
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(State(server): State<Shared>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], server.metrics.text(&server.scheduler.load()))
}

/// Limits and default settings, as llama-server names them.
#[utoipa::path(get, path = "/props", responses((status = 200, description = "Properties", body = Object)))]
pub(crate) async fn props(State(server): State<Shared>) -> Json<Value> {
    let model = &server.model;
    let sampling = &model.sampling;
    let params = json!({
        "temperature": as_written(sampling.temperature),
        "top_k": sampling.top_k,
        "top_p": as_written(sampling.top_p),
        "min_p": as_written(sampling.min_p),
        "repetition_penalty": as_written(sampling.repetition_penalty),
        "presence_penalty": as_written(sampling.presence_penalty),
        "frequency_penalty": as_written(sampling.frequency_penalty),
    });
    Json(json!({
        "default_generation_settings": {"n_ctx": model.ctx, "params": params},
        "total_slots": server.slots,
        "model": model.name(),
        "build_info": model.fingerprint,
        "modalities": {"vision": false, "audio": false},
    }))
}
