//! `POST /v1/completions`: texts and their continuations.

use axum::Json;
use axum::extract::State;
use axum::response::sse::Event as SseEvent;
use axum::response::{IntoResponse, Response};
use lone_engine::{Event, FinishReason, News, Request};
use lone_lfm::Tokenizer;

use crate::answers::Answers;
use crate::chat::answers;
use crate::error::{ApiError, ErrorBody};
use crate::identity::{Identity, fresh, now};
use crate::reply::{Completion, CompletionChoice, CompletionLogprobs, Offsets};
use crate::request::{Body, Choosing, CompletionRequest, UsageTold};
use crate::sse::{self, Teller, data, done};
use crate::state::{Server, Shared};
use crate::tally::Tally;

/// Continues texts.
#[utoipa::path(
    post, path = "/v1/completions", request_body = CompletionRequest,
    responses(
        (status = 200, description = "The answers; with `stream`, pieces of them as server-sent events", content((Completion = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "A field is wrong or not supported", body = ErrorBody),
        (status = 404, description = "The model is not served", body = ErrorBody),
        (status = 429, description = "The queue is full", body = ErrorBody),
    )
)]
pub(crate) async fn create(State(server): State<Shared>, body: Body) -> Result<Response, ApiError> {
    let read = move |server: &Server| prepare(server, CompletionRequest::parse(body.fields()?)?);
    let (requests, choosing) = server.work(read).await?;
    let identity = Identity {
        id: fresh("cmpl-"),
        created: now(),
        model: server.model.name().to_owned(),
        fingerprint: server.model.fingerprint.clone(),
    };
    let stop_tokens = &server.model.facts.eos_token_ids;
    let choices: Vec<Choice> = requests.iter().map(|_| Choice::new(stop_tokens.clone())).collect();
    let mut answers = Answers::to(&server, requests, choosing.answers())?;
    let mut teller = CompletionTeller { server, identity, choices, usage_told: choosing.usage_told() };
    if choosing.streams() {
        return Ok(sse::respond(answers, teller));
    }
    let mut whole: Vec<_> = (0..teller.choices.len())
        .map(|index| CompletionChoice { index, ..CompletionChoice::default() })
        .collect();
    while let Some((index, news)) = answers.next().await? {
        if let Some(piece) = teller.piece(index, news) {
            whole[index].add(piece);
        }
    }
    let tally = answers.tally();
    let completion =
        Completion::new(&teller.identity, whole).costing(Some(tally.usage(0)), Some(tally.timings()));
    Ok(Json(completion).into_response())
}

/// What the engine is asked: all answers to the first prompt, then those to the next; and how they are told.
fn prepare(server: &Server, request: CompletionRequest) -> Result<(Vec<Request>, Choosing), ApiError> {
    let model = &server.model;
    model.check_name(request.model.as_deref())?;
    let sampling = request.choosing.sampling(&model.sampling, model.facts.vocab_size)?;
    let (max_new_tokens, logprobs) = (request.most_tokens(), request.logprobs.map(|top| top as usize));
    let mut requests = Vec::new();
    for prompt in model.tokens_of(request.prompt)? {
        let stop_tokens = model.facts.eos_token_ids.clone();
        let template = Request { prompt, max_new_tokens, stop_tokens, logprobs, ..Request::default() };
        requests.extend(answers(&template, &sampling, &request.choosing)?);
    }
    Ok((requests, request.choosing))
}

/// An answer in the making.
struct Choice {
    stop_tokens: Vec<u32>,
    offsets: Offsets,
    /// Of tokens whose text is not told yet.
    pending: CompletionLogprobs,
}

impl Choice {
    fn new(stop_tokens: Vec<u32>) -> Self {
        Choice { stop_tokens, offsets: Offsets::default(), pending: CompletionLogprobs::default() }
    }

    fn hear(&mut self, tokenizer: &Tokenizer, news: News) -> Option<CompletionChoice> {
        match news {
            News::Event(Event::Token { id, logprobs: Some(logprobs) }) if !self.stop_tokens.contains(&id) => {
                let offset = self.offsets.pass(tokenizer, id);
                self.pending.push(tokenizer, id, &logprobs, offset);
                None
            }
            News::Event(Event::Text(text)) => {
                Some(CompletionChoice { text, logprobs: self.told(), ..CompletionChoice::default() })
            }
            News::Ended(ended) => {
                // Tokens whose text never came out stay untold too, unless it is for want of room.
                let logprobs = self.told().filter(|_| ended.reason == FinishReason::Length);
                let finish_reason = Some(ended.reason.as_str());
                Some(CompletionChoice { logprobs, finish_reason, ..CompletionChoice::default() })
            }
            _ => None,
        }
    }

    fn told(&mut self) -> Option<CompletionLogprobs> {
        let told = std::mem::take(&mut self.pending);
        (!told.is_empty()).then_some(told)
    }
}

impl CompletionChoice {
    fn add(&mut self, piece: CompletionChoice) {
        self.text.push_str(&piece.text);
        self.finish_reason = piece.finish_reason.or(self.finish_reason);
        if let Some(logprobs) = piece.logprobs {
            self.logprobs.get_or_insert_default().extend(logprobs);
        }
    }
}

struct CompletionTeller {
    server: Shared,
    identity: Identity,
    choices: Vec<Choice>,
    usage_told: UsageTold,
}

impl CompletionTeller {
    fn piece(&mut self, index: usize, news: News) -> Option<CompletionChoice> {
        let piece = self.choices[index].hear(&self.server.model.tokenizer, news)?;
        Some(CompletionChoice { index, ..piece })
    }
}

impl Teller for CompletionTeller {
    fn begin(&mut self) -> Vec<SseEvent> {
        Vec::new()
    }

    fn hear(&mut self, index: usize, news: News, tally: &Tally) -> Vec<SseEvent> {
        let piece = self.piece(index, news);
        let usage = self.usage_told.always.then(|| tally.usage(0));
        let chunk = |piece| Completion::new(&self.identity, vec![piece]).costing(usage, None);
        piece.into_iter().map(|piece| data(&chunk(piece))).collect()
    }

    fn end(&mut self, tally: &Tally) -> Vec<SseEvent> {
        if !self.usage_told.at_end {
            return vec![done()];
        }
        let last =
            Completion::new(&self.identity, Vec::new()).costing(Some(tally.usage(0)), Some(tally.timings()));
        vec![data(&last), done()]
    }

    fn fail(&mut self, error: &ApiError) -> Vec<SseEvent> {
        vec![data(&error.body()), done()]
    }
}
