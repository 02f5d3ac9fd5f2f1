//! `POST /v1/responses`: OpenAI's newer shape of the same conversation.
//!
//! Nothing is kept between requests, so `previous_response_id` is not supported; what a conversation needs stands in
//! its input.

mod input;
mod output;
mod reply;
mod request;

use axum::Json;
use axum::extract::State;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use lone_engine::News;
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::chat::{Choice, Prepared, prepare};
use crate::error::{ApiError, ErrorBody};
use crate::identity::{fresh, now};
use crate::reply::as_written;
use crate::request::{Body, Tools};
use crate::sse::{self, Teller};
use crate::state::{Server, Shared};
use crate::tally::Tally;
use output::Output;
pub(crate) use reply::ResponseObject;
pub(crate) use request::ResponsesRequest;

/// Answers an input.
#[utoipa::path(
    post, path = "/v1/responses", request_body = ResponsesRequest,
    responses(
        (status = 200, description = "The response; with `stream`, its making as server-sent events", content((ResponseObject = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "A field is wrong or not supported", body = ErrorBody),
        (status = 404, description = "The model is not served", body = ErrorBody),
        (status = 429, description = "The queue is full", body = ErrorBody),
    )
)]
pub(crate) async fn create(State(server): State<Shared>, body: Body) -> Result<Response, ApiError> {
    let read = move |server: &Server| {
        let request = ResponsesRequest::parse(body.fields()?)?;
        let prepared = prepare(server, &request.as_chat()?).map_err(renamed)?;
        Ok((prepared, Output::new(empty(server, &request)), request.streams()))
    };
    let (Prepared { requests, parts, parallel_calls, held_by }, output, streams) = server.work(read).await?;
    let choice = Choice::new(parts, server.model.facts.eos_token_ids.clone(), parallel_calls);
    let mut answers = Answers::to(&server, requests, 1)?.held_by(held_by);
    let mut teller = ResponseTeller { server, output, choice, told: 0 };
    if streams {
        return Ok(sse::respond(answers, teller));
    }
    while let Some((index, news)) = answers.next().await? {
        teller.hear(index, news, answers.tally());
    }
    teller.end(answers.tally());
    Ok(Json(teller.output.into_response()).into_response())
}

/// Faults in what became messages are faults in `input`.
fn renamed(error: ApiError) -> ApiError {
    error.renamed("messages", "input")
}

/// A response that says nothing yet.
fn empty(server: &Server, request: &ResponsesRequest) -> ResponseObject {
    let defaults = &server.model.sampling;
    let tools = request.tools.as_ref();
    ResponseObject {
        id: fresh("resp_"),
        object: "response",
        created_at: now(),
        status: "in_progress",
        error: None,
        incomplete_details: None,
        instructions: request.instructions.clone(),
        max_output_tokens: request.max_output_tokens,
        model: server.model.name().to_owned(),
        output: Vec::new(),
        parallel_tool_calls: tools.is_none_or(|tools| tools.parallel),
        previous_response_id: None,
        store: false,
        temperature: as_written(request.temperature.unwrap_or(defaults.temperature)),
        top_p: as_written(request.top_p.unwrap_or(defaults.top_p)),
        tool_choice: tools.map_or(json!("auto"), |tools| tools.choice.to_value()),
        tools: tools.map(Tools::flat).unwrap_or_default(),
        truncation: "disabled",
        usage: None,
        timings: None,
    }
}

struct ResponseTeller {
    server: Shared,
    output: Output,
    choice: Choice,
    /// Events so far.
    told: usize,
}

impl ResponseTeller {
    fn events(&mut self, events: Vec<Value>) -> Vec<Event> {
        let event = |mut event: Value| {
            event["sequence_number"] = self.told.into();
            self.told += 1;
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            sse::data(&event).event(kind)
        };
        events.into_iter().map(event).collect()
    }
}

impl Teller for ResponseTeller {
    fn begin(&mut self) -> Vec<Event> {
        let events = self.output.begin();
        self.events(events)
    }

    fn hear(&mut self, _: usize, news: News, _: &Tally) -> Vec<Event> {
        let pieces = self.choice.hear(&self.server.model.tokenizer, news);
        let events = pieces.into_iter().flat_map(|piece| self.output.add(piece)).collect();
        self.events(events)
    }

    fn end(&mut self, tally: &Tally) -> Vec<Event> {
        let events = self.output.end(tally, self.choice.reasoning_tokens());
        self.events(events)
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        let events = self.output.fail(error.message());
        self.events(events)
    }
}
