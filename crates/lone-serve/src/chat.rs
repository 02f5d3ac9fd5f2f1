//! `POST /v1/chat/completions`: from a conversation to its continuation.

mod choice;
mod prepare;
mod teller;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::answers::Answers;
use crate::error::{ApiError, ErrorBody};
use crate::identity::{Identity, fresh, now};
use crate::reply::{ChatChoice, ChatCompletion};
use crate::request::{Body, ChatRequest};
use crate::sse;
use crate::state::{Server, Shared};
pub(crate) use choice::{Choice, Piece};
pub(crate) use prepare::{Prepared, answers, prepare};
use teller::ChatTeller;

/// Continues a conversation.
#[utoipa::path(
    post, path = "/v1/chat/completions", request_body = ChatRequest,
    responses(
        (status = 200, description = "The answers; with `stream`, chunks of them as server-sent events", content((ChatCompletion = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "A field is wrong or not supported", body = ErrorBody),
        (status = 404, description = "The model is not served", body = ErrorBody),
        (status = 429, description = "The queue is full", body = ErrorBody),
    )
)]
pub(crate) async fn create(State(server): State<Shared>, body: Body) -> Result<Response, ApiError> {
    let read = move |server: &Server| {
        let request = ChatRequest::parse(body.fields()?)?;
        Ok((prepare(server, &request)?, request.choosing))
    };
    let (Prepared { requests, parts, parallel_calls, held_by }, choosing) = server.work(read).await?;
    let stop_tokens = server.model.facts.eos_token_ids.clone();
    let identity = Identity {
        id: fresh("chatcmpl-"),
        created: now(),
        model: server.model.name().to_owned(),
        fingerprint: server.model.fingerprint.clone(),
    };
    let choice = || Choice::new(parts.clone(), stop_tokens.clone(), parallel_calls);
    let choices: Vec<Choice> = requests.iter().map(|_| choice()).collect();
    let mut answers = Answers::to(&server, requests, choosing.answers())?.held_by(held_by);
    if choosing.streams() {
        let teller = ChatTeller::new(server, identity, choices, choosing.usage_told());
        return Ok(sse::respond(answers, teller));
    }
    let mut choices: Vec<_> = choices.into_iter().map(|choice| (choice, ChatChoice::empty())).collect();
    while let Some((index, news)) = answers.next().await? {
        let (choice, whole) = &mut choices[index];
        for piece in choice.hear(&server.model.tokenizer, news) {
            whole.add(piece);
        }
    }
    let reasoning_tokens = choices.iter().map(|(choice, _)| choice.reasoning_tokens()).sum();
    let whole =
        choices.into_iter().enumerate().map(|(index, (_, choice))| ChatChoice { index, ..choice }.complete());
    let tally = answers.tally();
    let completion =
        ChatCompletion::new(identity, whole.collect(), tally.usage(reasoning_tokens), tally.timings());
    Ok(Json(completion).into_response())
}
