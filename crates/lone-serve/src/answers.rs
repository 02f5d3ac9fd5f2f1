//! News of a job on its way from the engine's thread to whoever asked over HTTP.
//!
//! The channel has no bound of its own, so that a slow reader holds nobody up; answers do, by the context. Dropping
//! the receiving end, which is what becomes of it when a client goes away, ends the job before its next pass.

use std::sync::Arc;
use std::time::Instant;

use lone_energy::{Energy, Mark};
use lone_engine::{Job, Listener, News, Request};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::error::ApiError;
use crate::state::Shared;
use crate::tally::Tally;

/// The receiving end of a job's news.
#[derive(Debug)]
pub(crate) struct Answers {
    server: Shared,
    news: UnboundedReceiver<(usize, News)>,
    deadline: Instant,
    /// Whether the server has no more time.
    ending: watch::Receiver<bool>,
    tally: Tally,
    /// Answers that are still to end.
    missing: usize,
    /// The moment the request was made, where there is a meter.
    begin: Option<Mark>,
    /// The field that has the form which the answers are held to, if they are.
    held_by: Option<String>,
    /// The request, for the log.
    span: tracing::Span,
}

/// The sending end, in the engine's hands.
struct Ear(UnboundedSender<(usize, News)>);

impl Listener for Ear {
    fn hear(&mut self, index: usize, news: News) {
        // Whoever has gone does not mind.
        self.0.send((index, news)).ok();
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

impl Answers {
    /// Puts `requests`, so many to each prompt, in the queue as one job.
    pub(crate) fn to(
        server: &Shared,
        requests: Vec<Request>,
        answers_per_prompt: u32,
    ) -> Result<Self, ApiError> {
        let (to, news) = unbounded_channel();
        let (tally, missing) = (Tally::of(&requests, answers_per_prompt as usize), requests.len());
        let begin = server.meter.as_ref().and_then(|meter| meter.mark());
        server.scheduler.submit(Job { requests, listener: Box::new(Ear(to)) })?;
        let (server, span) = (Arc::clone(server), tracing::Span::current());
        let deadline = Instant::now() + server.options.request_timeout;
        let ending = server.ending.subscribe();
        Ok(Answers { server, news, deadline, ending, tally, missing, begin, held_by: None, span })
    }

    /// Names the field that has the form which the answers are held to.
    pub(crate) fn held_by(mut self, field: Option<String>) -> Self {
        self.held_by = field;
        self
    }

    /// The next of the job's news, or `None` after the end of its last answer.
    pub(crate) async fn next(&mut self) -> Result<Option<(usize, News)>, ApiError> {
        if self.missing == 0 {
            return Ok(None);
        }
        let news = tokio::time::timeout_at(self.deadline.into(), self.news.recv());
        let news = tokio::select! {
            news = news => news,
            _ = self.ending.wait_for(|is_ending| *is_ending) => return Err(ApiError::cut_off()),
        };
        match news {
            Err(_) => Err(ApiError::timed_out(self.server.options.request_timeout)),
            Ok(None) => Err(ApiError::internal("the engine gave the request up")),
            Ok(Some((_, News::Refused(reason)))) => Err(match &self.held_by {
                Some(field) => ApiError::request(reason).at(field),
                None => ApiError::request(reason),
            }),
            Ok(Some((_, News::Failed(reason)))) => {
                self.span.in_scope(|| tracing::error!(reason, "an answer failed"));
                Err(ApiError::internal(format!("the answer failed: {reason}")))
            }
            Ok(Some((index, news))) => {
                self.tally.hear(index, &news);
                if let News::Ended(ended) = &news {
                    self.missing -= 1;
                    self.server.metrics.answered(ended);
                    if self.missing == 0
                        && let Some(energy) = self.energy()
                    {
                        self.server.metrics.used(&energy, self.tally.answer_tokens());
                        self.tally.used(&energy);
                    }
                }
                Ok(Some((index, news)))
            }
        }
    }

    /// What the machine has used since the request was made.
    fn energy(&self) -> Option<Energy> {
        let (meter, begin) = (self.server.meter.as_ref()?, self.begin.as_ref()?);
        meter.measured(begin, &meter.mark()?)
    }

    /// What the answers have cost so far.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.span.in_scope(|| self.tally.log(self.missing));
        if self.missing > 0 {
            self.server.metrics.abandoned.inc();
        }
    }
}
