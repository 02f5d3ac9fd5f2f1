//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use lone_engine::News;
use serde::Serialize;

use crate::answers::Answers;
use crate::error::ApiError;
use crate::tally::Tally;

/// Time without an event after which a comment shows that the server is still there.
const QUIET: Duration = Duration::from_secs(10);

/// Turns news of answers into events.
pub(crate) trait Teller: Send + 'static {
    /// Events before any news.
    fn begin(&mut self) -> Vec<Event>;
    /// Events that news of answer number `index` makes, after which the answers have cost so much.
    fn hear(&mut self, index: usize, news: News, tally: &Tally) -> Vec<Event>;
    /// Events after the end of the last answer.
    fn end(&mut self, tally: &Tally) -> Vec<Event>;
    /// Events when there will be no more news.
    fn fail(&mut self, error: &ApiError) -> Vec<Event>;
}

struct Telling<T> {
    answers: Answers,
    teller: T,
    ready: VecDeque<Event>,
    is_over: bool,
}

/// A response that tells of `answers` as they come.
pub(crate) fn respond(answers: Answers, mut teller: impl Teller) -> Response {
    let ready = VecDeque::from(teller.begin());
    let telling = Telling { answers, teller, ready, is_over: false };
    let events = stream::unfold(telling, |mut telling| async move {
        let event = telling.next().await?;
        Some((Ok::<_, Infallible>(event), telling))
    });
    // Asks nginx, which would otherwise collect them, to pass events on at once.
    let headers = [("x-accel-buffering", "no")];
    (headers, Sse::new(events).keep_alive(KeepAlive::new().interval(QUIET))).into_response()
}

impl<T: Teller> Telling<T> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let events = match self.answers.next().await {
                Ok(Some((index, news))) => self.teller.hear(index, news, self.answers.tally()),
                Ok(None) => {
                    self.is_over = true;
                    self.teller.end(self.answers.tally())
                }
                Err(error) => {
                    self.is_over = true;
                    self.teller.fail(&error)
                }
            };
            self.ready.extend(events);
        }
    }
}

/// An event with `data` as JSON.
pub(crate) fn data(data: &impl Serialize) -> Event {
    let json = serde_json::to_string(data).expect("replies are plain data");
    Event::default().data(json)
}

/// The event that ends streams of completions.
pub(crate) fn done() -> Event {
    Event::default().data("[DONE]")
}
